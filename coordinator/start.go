package coordinator

import (
	"context"

	"hdsd/config"
	"hdsd/log"
)

// restoredCounts holds the numbers of restored rows.
type restoredCounts struct{ endpoints, checkers, overrides, trust int }

// countRestored counts the rows of a restored state.
func countRestored(s *log.State) restoredCounts {
	return restoredCounts{endpoints: len(s.Current), checkers: len(s.Plan), overrides: len(s.Overrides), trust: len(s.Trust)}
}

// logStart logs the configuration and the restored state at the start.
func (c *Coordinator) logStart() {
	var files []string
	for _, source := range c.started.GetSources() {
		if path, _ := config.PathOf(source); path != "" {
			files = append(files, path)
		}
	}
	clusters, endpoints := 0, 0
	// An error means that the coordinator is stopping.
	_ = c.core.inspect(context.Background(), func() { clusters, endpoints = len(c.core.Rulings.Names()), c.core.Rulings.Len() })
	c.log.Info().Str("event", "started").Str("version", c.ready.version).Str("node_id", c.started.GetNodeId()).Str("data_dir", c.started.GetDataDir()).
		Strs("files", files).Int("clusters", clusters).Int("endpoints", endpoints).Int("restored_endpoints", c.ready.restored.endpoints).
		Int("restored_checkers", c.ready.restored.checkers).Int("overrides", c.ready.restored.overrides).Int("judged_checkers", c.ready.restored.trust).
		Bool("frozen", c.core.publisher.freeze.Load() != nil).Msg("started")
}
