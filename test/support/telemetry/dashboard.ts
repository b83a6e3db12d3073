import { readFileSync } from 'node:fs';

type Query = Readonly<Record<'expr', string>>;

/** The fields of the Grafana dashboard that tests read. */
interface Dashboard {
  readonly schemaVersion: number;
  readonly panels: readonly { readonly title: string; readonly targets?: readonly Query[] }[];
  readonly templating: { readonly list: readonly Record<'name' | 'type', string>[] };
}

export function readDashboard(): Dashboard {
  return JSON.parse(readFileSync('deploy/grafana/darkroom.json', 'utf8')) as Dashboard;
}

/** Lists all queries of the dashboard with their panel's title. */
export const listExpressions = () =>
  readDashboard().panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }) => ({ title, expr })),
  );
