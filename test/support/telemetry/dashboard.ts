import { readFileSync } from 'node:fs';

/** The Grafana dashboard, as far as it is looked at. */
interface Dashboard {
  readonly schemaVersion: number;
  readonly panels: readonly {
    readonly title: string;
    readonly targets?: readonly { readonly expr: string }[];
  }[];
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly type: string }[];
  };
}

export function readDashboard(): Dashboard {
  return JSON.parse(readFileSync('deploy/grafana/darkroom.json', 'utf8')) as Dashboard;
}

/** All queries of the dashboard, with the titles of their panels. */
export function listExpressions(): readonly { readonly title: string; readonly expr: string }[] {
  return readDashboard().panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }) => ({ title, expr })),
  );
}
