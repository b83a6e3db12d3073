/** prom-client. The build bundles it into this file, with OpenTelemetry's API, on which it depends. */
export { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
