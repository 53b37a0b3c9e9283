// Package alerting tests what tells people that something is wrong, with the real programs
// that they use: Debian's Alertmanager gets what hdsd sends, and Debian's promtool tries
// docs/alerts.yaml on what hdsd exposes.
package alerting
