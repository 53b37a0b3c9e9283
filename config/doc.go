// Package config reads and checks the configuration of a coordinator.
//
// It owns the meaning of hdsd.config.v1.Config: its defaults, its bounds, and which
// fields a running coordinator can apply without a restart. It also owns that of
// hdsd.config.v1.Fleet, the input of a simulation. It guarantees:
//   - Every problem of a file is reported at once, with line and field.
//   - A configuration without problems is complete: every default is filled in and
//     every path is absolute.
//   - The servers' TLS configurations use the current content of their files.
//
// It starts no goroutine: certificates are read during handshakes. Of this module it
// may import internal/yamlpb, source/xds (to check the sources that use it), access (to
// check grants) and the generated messages.
package config
