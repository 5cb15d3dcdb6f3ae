// Package alerts tests what the chart gives to Prometheus and Grafana: each alert fires in Prometheus' own rule engine
// when it should, and only then, each expression parses and asks for metrics that docs/metrics.md has, and each alert
// leads to a place there. The scripts in testdata say what is loaded, in the language of promqltest, and what fires
// when. It is a module of its own, because Prometheus must not be one of Weir's dependencies.
package alerts
