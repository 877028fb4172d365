// SPDX-License-Identifier: Apache-2.0

// Package prometheus checks the alerts and dashboards of manifests/components/monitoring with the code of Prometheus:
// every query parses, names metrics and labels that exist, and returns something; every alert fires in histories in
// which it should, and stays silent in others. It is a module of its own, so that nothing else depends on Prometheus.
package prometheus
