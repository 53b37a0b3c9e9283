package check

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"golang.org/x/net/http2/hpack"
)

// encodeFields encodes a request's fields to the same bytes each time: it adds nothing
// to the connection's table.
func encodeFields(fields []field) []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	e.SetMaxDynamicTableSize(0)
	for _, f := range fields {
		e.WriteField(hpack.HeaderField{Name: f.name, Value: f.value}) //nolint:errcheck // a Buffer cannot fail
	}
	return b.Bytes()
}

// pseudo returns the pseudo-header fields of a request.
func pseudo(method, path, authority string, secure bool) []field {
	scheme := "http"
	if secure {
		scheme = "https"
	}
	return []field{{":method", method}, {":scheme", scheme}, {":authority", authority}, {":path", path}}
}

// request2 returns the fields of an HTTP/2 request.
func (h *httpCheck) request2(hostname string, secure bool) []byte {
	fields := append(pseudo(h.method, h.path, cmp.Or(hostname, h.host), secure), h.fields...)
	if len(h.payload) > 0 {
		fields = append(fields, field{"content-length", strconv.Itoa(len(h.payload))})
	}
	return encodeFields(fields)
}

func (p *prober) probeHTTP2(ctx context.Context) (Outcome, int) {
	h := p.check.http
	if p.request == nil {
		p.request = h.request2(p.host.spec.hostname, p.check.https)
	}
	if _, err := p.connect(ctx); err != nil {
		return p.failure(err), 0
	}
	a, err := p.roundTrip2(h)
	switch {
	case errors.Is(err, errStreamReset): // the connection stays usable
		p.keepOrDrop2()
		return NetworkFailure, 0
	case err != nil:
		return p.failure(err), 0
	}
	p.keepOrDrop2()
	return h.judge(a.status, a.header, a.body), a.status
}

// keepOrDrop2 drops the connection unless it is reusable.
func (p *prober) keepOrDrop2() {
	if !p.check.reuse || p.http2.leaving {
		p.drop()
	}
}

// roundTrip2 sends a request by HTTP/2, and returns the response.
func (p *prober) roundTrip2(h *httpCheck) (answer, error) {
	if err := p.http2.request(p.request, h.payload, h.method == http.MethodHead); err != nil {
		return answer{}, err
	}
	var a answer
	for length := 0; ; {
		e, err := p.http2.next()
		if err != nil {
			return answer{}, err
		}
		switch e.kind {
		case header:
			a.status, a.header = e.status, e.header
		case data:
			if length += len(e.data); length > maxBody {
				return answer{}, fmt.Errorf("%w: %d bytes of a body", errTooLong, length)
			}
			if len(h.receive) > 0 {
				a.body = append(a.body, e.data[:min(len(e.data), h.receiveBuffer-len(a.body))]...)
			}
		}
		if e.ends {
			return a, nil
		}
	}
}
