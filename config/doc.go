// Package config reads and checks the configuration of a coordinator.
//
// It owns the meaning of hdsd.config.v1.Config: its defaults, its bounds, and
// what a running coordinator can take over without a restart; and that of
// hdsd.config.v1.Fleet, which is simulated. It promises that every problem of a
// file is reported at once, with line and field, and that a configuration
// without problems is complete: every default filled in and every path
// absolute. It also makes the servers' TLS configurations, which follow their
// files.
//
// It starts no goroutine: certificates are looked at during handshakes. Of
// this module it may import internal/yamlpb, health, source/xds (to check what
// sources need it) and the generated messages.
package config
