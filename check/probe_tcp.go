package check

import (
	"context"
	"time"
)

// maxTCPAnswer bounds the part of a response that is examined: Envoy's buffer.
const maxTCPAnswer = 32 << 10

func (p *prober) probeTCP(ctx context.Context) Outcome {
	deadline, err := p.connect(ctx)
	if err != nil {
		return p.failure(err)
	}
	t := p.check.tcp
	if len(t.receive) == 0 {
		p.drop()
		return Passed
	}
	if request := t.request(p.conn); len(request) > 0 {
		if _, err := p.conn.Write(request); err != nil {
			return p.failure(err)
		}
	}
	outcome := p.readExpected(ctx, t.receive, deadline)
	if outcome == Passed && !p.check.reuse {
		p.drop()
	}
	return outcome
}

// readExpected reads until the expected response has arrived. Wrong bytes look the same as
// missing ones: only the timeout ends the wait.
func (p *prober) readExpected(ctx context.Context, want [][]byte, deadline time.Time) Outcome {
	var received []byte
	chunk := make([]byte, 512)
	for len(received) < maxTCPAnswer {
		n, err := p.conn.Read(chunk)
		received = append(received, chunk[:n]...)
		if contains(received, want) {
			return Passed
		}
		if err != nil {
			return p.failure(err)
		}
	}
	p.drop()
	p.timer.Reset(time.Until(deadline))
	p.sleep(ctx)
	return TimedOut
}
