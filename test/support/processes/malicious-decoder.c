/*
 * A compromised video decoder: it passes the probe, then runs the command in its stream and prints the outcome. It is
 * linked statically, so it needs no other file.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static char text[1 << 16];

static void outcome(long result) {
  if (result < 0) printf("%s", strerrorname_np(errno));
  else printf("done %ld", result);
}

static int idle(void *unused) {
  (void)unused;
  for (;;) pause();
  return 0;
}

static void create(int flags) {
  char *stack = malloc(1 << 16);
  outcome(clone(idle, stack + (1 << 16), flags | SIGCHLD, NULL));
}

static void create_by_clone3(void) {
  struct clone_args args = {.exit_signal = SIGCHLD};
  long pid = syscall(SYS_clone3, &args, sizeof args);
  if (pid == 0) idle(NULL);
  outcome(pid);
}

#ifdef SYS_fork
static void create_by(long call) {
  long pid = syscall(call);
  if (pid == 0) idle(NULL);
  outcome(pid);
}
#endif

static void reach(const char *address, int port) {
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return outcome(fd);
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
  inet_pton(AF_INET, address, &to.sin_addr);
  outcome(connect(fd, (struct sockaddr *)&to, sizeof to));
}

static void list(const char *path) {
  DIR *directory = opendir(path);
  if (!directory) return outcome(-1);
  for (struct dirent *entry; (entry = readdir(directory));)
    if (entry->d_name[0] != '.') printf("%s ", entry->d_name);
}

static void limits(void) {
  struct rlimit data, cpu, size, files;
  getrlimit(RLIMIT_DATA, &data);
  getrlimit(RLIMIT_CPU, &cpu);
  getrlimit(RLIMIT_FSIZE, &size);
  getrlimit(RLIMIT_NOFILE, &files);
  printf("%ld %ld %ld %ld", (long)data.rlim_max, (long)cpu.rlim_max, (long)size.rlim_max, (long)files.rlim_max);
}

static void descriptors(void) {
  for (int fd = 0; fd < 64; fd++)
    if (fcntl(fd, F_GETFD) >= 0) printf("%d ", fd);
}

static void allocate_all(void) {
  long mebibytes = 0;
  for (char *part; (part = malloc(1 << 20)); mebibytes++) memset(part, 1, 1 << 20);
  printf("%ld", mebibytes);
}

static void picture(int width, int height) {
  printf("YUV4MPEG2 W%d H%d F25:1 Ip A1:1 C420jpeg\nFRAME\n", width, height);
  for (int sample = 0; sample < width * height * 3 / 2; sample++) putchar(128);
}

static void run(char *word) {
  char *rest = strchr(word, ' ');
  if (rest) *rest++ = 0;
  if (!strcmp(word, "pictures")) for (int n = 0; n < 1000; n++) picture(16, 16);
  if (!strcmp(word, "endless")) for (;;) putchar('x');
  if (!strcmp(word, "nothing")) exit(0);
  if (!strcmp(word, "status")) exit(3);
  if (!strcmp(word, "crash")) abort();
  if (!strcmp(word, "hang")) for (;;);
  if (!strcmp(word, "stay")) { picture(16, 16); fflush(stdout); close(1); idle(NULL); }
  if (!strcmp(word, "complain")) {
    for (int n = 0; n < 100000; n++) fprintf(stderr, "complaint %d\n", n);
    printf("done");
  }
  if (!strcmp(word, "process")) create(0);
  if (!strcmp(word, "clone3")) create_by_clone3();
#ifdef SYS_fork
  if (!strcmp(word, "fork")) create_by(SYS_fork);
  if (!strcmp(word, "vfork")) create_by(SYS_vfork);
#else
  if (!strcmp(word, "fork") || !strcmp(word, "vfork")) create(0);
#endif
  if (!strcmp(word, "thread-namespace"))
    create(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_NEWNET);
  if (!strcmp(word, "thread")) create(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD);
  if (!strcmp(word, "namespace")) outcome(unshare(CLONE_NEWUSER));
  if (!strcmp(word, "socket")) reach("127.0.0.1", atoi(rest));
  if (!strcmp(word, "unix")) outcome(socket(AF_UNIX, SOCK_STREAM, 0));
  if (!strcmp(word, "kill")) outcome(kill(rest ? atoi(rest) : -1, SIGKILL));
  if (!strcmp(word, "read")) outcome(open(rest, O_RDONLY));
  if (!strcmp(word, "write")) outcome(open(rest, O_WRONLY | O_CREAT, 0600));
  if (!strcmp(word, "list")) list(rest);
  if (!strcmp(word, "environment")) for (char **each = environ; *each; each++) printf("%s\n", *each);
  if (!strcmp(word, "limits")) limits();
  if (!strcmp(word, "descriptors")) descriptors();
  if (!strcmp(word, "devour")) allocate_all();
  if (!strcmp(word, "shell")) outcome(execl("/bin/sh", "sh", "-c", "echo a shell", NULL));
}

int main(int count, char **words) {
  if (count > 1 && !strcmp(words[1], "-decoders")) {
    fprintf(stderr, "ffmpeg version malicious Copyright\n");
    const char *names[] = {"h264", "hevc", "vp8", "vp9", "libdav1d"};
    for (int n = 0; n < 5; n++) printf(" V....D %s   a decoder\n", names[n]);
    return 0;
  }
  size_t bytes = fread(text, 1, sizeof text - 1, stdin);
  if (bytes > 4 && text[0] == 0) picture(16, 16);
  else run(text);
  return 0;
}
