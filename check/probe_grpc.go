package check

import (
	"context"
	"errors"
)

func (p *prober) probeGRPC(ctx context.Context) Outcome {
	g := p.check.grpc
	if p.request == nil {
		p.request = g.request(p.host.spec.hostname, p.check.https)
	}
	if _, err := p.connect(ctx); err != nil {
		return p.failure(err)
	}
	if err := p.http2.request(p.request, g.payload, false); err != nil {
		return p.failure(err)
	}
	var a grpcAnswer
	for {
		e, err := p.http2.next()
		if err != nil {
			return p.failedGRPC(err)
		}
		o, certain := a.add(e)
		if !certain {
			continue
		}
		if !e.ends && p.http2.cancel() != nil {
			p.drop()
			return o
		}
		p.keepOrDrop2()
		return o
	}
}

// failedGRPC returns the outcome of an error. Unlike an HTTP check, a gRPC check that
// times out cancels only the stream and keeps the connection, as in Envoy.
func (p *prober) failedGRPC(err error) Outcome {
	switch {
	case errors.Is(err, errStreamReset):
		p.keepOrDrop2()
		return NetworkFailure
	case isTimeout(err) && !errors.Is(err, errBroken):
		if p.http2.cancel() != nil {
			p.drop()
			return TimedOut
		}
		p.keepOrDrop2()
		return TimedOut
	default:
		return p.failure(err)
	}
}
