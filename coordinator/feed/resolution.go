package feed

import "context"

// resolution runs the resolver of a Feed.
type resolution struct {
	cancel context.CancelFunc
	ended  chan struct{}
}

func startResolution(ctx context.Context, f *Feed) *resolution {
	ctx, cancel := context.WithCancel(ctx)
	r := &resolution{cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		f.intake.dns.resolver.Run(ctx, func() {
			f.intake.renamed()
			f.pending.look()
		})
	}()
	return r
}

// stop ends the resolver and waits for it. A nil resolution never ran.
func (r *resolution) stop() {
	if r != nil {
		r.cancel()
		<-r.ended
	}
}
