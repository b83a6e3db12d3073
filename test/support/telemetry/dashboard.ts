import { readFileSync } from 'node:fs';

/** As much of a panel as is looked at. */
interface Panel {
  readonly title: string;
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}

/** The Grafana dashboard, as far as it is looked at. */
export interface Dashboard {
  readonly schemaVersion: number;
  readonly panels: readonly Panel[];
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
