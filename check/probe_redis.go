package check

import "context"

func (p *prober) probeRedis(ctx context.Context) Outcome {
	if _, err := p.connect(ctx); err != nil {
		return p.failure(err)
	}
	if _, err := p.conn.Write(p.check.redis.request); err != nil {
		return p.failure(err)
	}
	reply, rest, err := p.readReply()
	if err != nil {
		return p.failure(err)
	}
	if !p.check.reuse || reply.hasMore() || p.ignoreReplies(rest) != nil {
		p.drop()
	}
	return p.check.redis.judge(reply)
}

// readReply reads the first line of a reply, and returns the bytes after it.
func (p *prober) readReply() (r reply, rest []byte, err error) {
	for {
		if len(rest) == 0 {
			n, err := p.conn.Read(p.small[:])
			if n == 0 && err != nil {
				return reply{}, nil, err
			}
			rest = p.small[:n]
		}
		n, complete, err := p.replies.consume(rest)
		rest = rest[n:]
		if err != nil {
			return reply{}, nil, err
		}
		if complete {
			return p.replies.reply, rest, nil
		}
	}
}

// ignoreReplies reads replies without a request. They must be valid Redis all the same.
func (p *prober) ignoreReplies(b []byte) error {
	for len(b) > 0 {
		n, _, err := p.replies.consume(b)
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// idleRedis reads between probes until the connection's deadline or its end.
func (p *prober) idleRedis() error {
	for {
		n, err := p.conn.Read(p.small[:])
		if wrong := p.ignoreReplies(p.small[:n]); wrong != nil {
			return wrong
		}
		if err != nil {
			return err
		}
	}
}
