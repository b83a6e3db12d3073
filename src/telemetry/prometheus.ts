/** prom-client. The build bundles the package, which depends on OpenTelemetry's API, into this file. */
export { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
