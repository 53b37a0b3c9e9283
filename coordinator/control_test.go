package coordinator

import (
	"context"
	"sync"
	"testing"

	"hdsd/api"
	"hdsd/health"
	"hdsd/log"
	"hdsd/store"
)

// TestOutcomeIsNotReadAfterContext covers a caller whose context ends while the core may still write the
// outcome. The race detector finds a read.
func TestOutcomeIsNotReadAfterContext(t *testing.T) {
	l := newLab(t)
	l.serve(web("web", address1))
	stored, err := store.Open(t.Context(), t.TempDir(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer stored.Close()
	c := &control{core: l.core, store: stored}
	drain := log.Override{Scope: health.Endpoint{Cluster: "web"}, Status: health.Draining}
	for name, ask := range map[string]func(context.Context) error{
		"SetTrust": func(ctx context.Context) error {
			_, _, err := c.SetTrust(ctx, api.Trust{Checker: "a"})
			return err
		},
		"ClearTrust": func(ctx context.Context) error {
			_, err := c.ClearTrust(ctx, "a", "ann")
			return err
		},
		"Trust": func(ctx context.Context) error {
			_, err := c.Trust(ctx)
			return err
		},
		"SetOverride": func(ctx context.Context) error {
			_, _, err := c.SetOverride(ctx, api.Override{Scope: drain.Scope, Status: drain.Status})
			return err
		},
		"ClearOverrides": func(ctx context.Context) error {
			_, err := c.ClearOverrides(ctx, drain.Scope, false, "ann")
			return err
		},
		"Overrides": func(ctx context.Context) error {
			_, err := c.Overrides(ctx)
			return err
		},
		"Freeze": func(ctx context.Context) error {
			_, _, err := c.Freeze(ctx, api.Freeze{Reason: "moving"})
			return err
		},
		"Unfreeze": func(ctx context.Context) error {
			_, err := c.Unfreeze(ctx, "ann")
			return err
		},
	} {
		l.setTrust("a", &log.Trust{Level: log.Trusted})
		if _, err := l.override(drain); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var core sync.WaitGroup
		core.Go(func() {
			next := <-l.core.events
			cancel()
			l.core.handle(l.now, &next)
		})
		if err := ask(ctx); err != nil && ctx.Err() == nil {
			t.Errorf("%s: %v", name, err)
		}
		core.Wait()
	}
}
