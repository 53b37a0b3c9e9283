package xds

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	"hdsd/envoy/rules"
)

// paths of types, under a base URL.
var paths = map[string]string{
	rules.Cluster:    "/v3/discovery:clusters",
	rules.Assignment: "/v3/discovery:endpoints",
}

// errUnserved means that a server does not serve a type.
var errUnserved = errors.New("the server does not serve this")

// poller polls one type over REST.
type poller struct {
	channel  *channel
	table    *table
	client   *http.Client
	version  string            // of the last accepted response of the present server
	refusal  *statuspb.Status  // of the last response
	accepted [sha256.Size]byte // of the last accepted body
	change   int               // of the table, at its request
}

func newPoller(c *channel) *poller {
	transport := &http.Transport{
		ForceAttemptHTTP2: true, MaxResponseHeaderBytes: 64 << 10,
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) { return c.source.dialer(ctx, address) },
	}
	return &poller{channel: c, table: c.tables[0], client: &http.Client{
		Transport: transport,
		// Follow no redirect: only the configured server may answer.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// run polls one server until it fails.
func (p *poller) run(ctx context.Context, server int) (good bool, err error) {
	defer p.client.CloseIdleConnections()
	s := p.channel.source
	base := s.settings.servers()[server]
	p.version, p.accepted = "", [sha256.Size]byte{} // a server that was away may have other content under the same version
	for {
		if err := p.poll(ctx, base); err != nil {
			return good, err
		}
		good = true
		p.channel.reached(base)
		delay := s.settings.api.GetRefreshDelay().AsDuration()
		p.channel.sleep(ctx, delay+rand.N(delay/10+1), true) //nolint:gosec // so that clients do not come all at once
		for ctx.Err() == nil && !p.channel.asks() {
			p.channel.sleep(ctx, time.Hour, true)
		}
		if ctx.Err() != nil {
			return good, ctx.Err()
		}
	}
}

// poll sends one request.
func (p *poller) poll(ctx context.Context, base string) error {
	timeout := defaultRequestTimeout
	if t := p.channel.source.settings.api.GetRequestTimeout(); t != nil {
		timeout = t.AsDuration()
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %s (request_timeout)", timeout))
	defer cancel()
	question, change, err := p.question()
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, base+paths[p.table.typeURL], bytes.NewReader(question))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	body, err := p.do(request)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	if err != nil || body == nil {
		return err
	}
	return p.accept(body, change)
}

// question returns the next request, and the change of the table behind it.
func (p *poller) question() ([]byte, int, error) {
	p.channel.source.mu.Lock()
	defer p.channel.source.mu.Unlock()
	request := &discoveryv3.DiscoveryRequest{
		Node: p.channel.node, TypeUrl: p.table.typeURL, VersionInfo: p.version, ErrorDetail: p.refusal,
	}
	if !p.table.wildcard() {
		p.table.purge()
		request.ResourceNames = p.table.names(p.channel.scope)
		if !p.table.complete(p.channel.scope) {
			request.VersionInfo = "" // else the server may answer that nothing is new
		}
	}
	data, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(request)
	return data, p.table.change, err
}

// do returns the body of the response; nil if nothing is new.
func (p *poller) do(request *http.Request) ([]byte, error) {
	response, err := p.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // the body is read
	limit := p.channel.source.options.MaxMessageBytes
	body, err := io.ReadAll(io.LimitReader(response.Body, int64(limit)+1))
	switch {
	case err != nil:
		return nil, err
	case response.StatusCode == http.StatusNotModified, response.StatusCode == http.StatusNoContent:
		return nil, nil
	case response.StatusCode == http.StatusNotFound, response.StatusCode == http.StatusNotImplemented:
		return nil, fmt.Errorf("%w: the answer is %s: %s", errUnserved, response.Status, clip(string(body), maxOneReason))
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the answer is %s: %s", response.Status, clip(string(body), maxOneReason))
	case len(body) > limit:
		return nil, fmt.Errorf("the answer has more than %d bytes: "+larger, limit)
	case len(body) == 0:
		return nil, nil
	default:
		return body, nil
	}
}

// accept accepts a response.
func (p *poller) accept(body []byte, change int) error {
	sum := sha256.Sum256(body)
	if p.isKnown(sum, change) {
		return nil
	}
	version, u, err := parseJSON(body, p.table.typeURL)
	if err != nil {
		return err
	}
	p.channel.source.read(p.table, u)
	u.version, u.full, u.scope = version, p.table.wildcard(), p.channel.scope
	s := p.channel.source
	s.mu.Lock()
	defer s.mu.Unlock()
	refused := s.accept(p.table, u)
	p.refusal = refused.status()
	p.accepted, p.change = sum, change
	if refused != nil {
		p.accepted = [sha256.Size]byte{}
	} else {
		p.version = version
	}
	return nil
}

// isKnown reports whether a body would change nothing. A repeated one renews resources with a
// time to live or a lease.
func (p *poller) isKnown(sum [sha256.Size]byte, change int) bool {
	p.channel.source.mu.Lock()
	defer p.channel.source.mu.Unlock()
	return sum == p.accepted && change == p.change && p.table.counts.mortal == 0
}
