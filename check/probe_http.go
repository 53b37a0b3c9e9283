package check

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// Limits of an HTTP response: Envoy's, if it has them.
const (
	maxHeader  = 60 << 10
	maxHeaders = 100
	maxBody    = 4 << 20
)

var (
	errTooLong   = errors.New("answer is too long")
	errNotHTTP1  = errors.New("answer is not HTTP/1")
	readers      = sync.Pool{New: func() any { return newReader() }}
	discardBytes = sync.Pool{New: func() any { return new([4096]byte) }}
)

// reader is a buffered reader with a limit.
type reader struct {
	buffered *bufio.Reader
	source   io.Reader
	left     int
}

func newReader() *reader {
	r := &reader{}
	r.buffered = bufio.NewReaderSize(r, 2048)
	return r
}

// Read implements io.Reader.
func (r *reader) Read(b []byte) (int, error) {
	if r.left <= 0 {
		return 0, errTooLong
	}
	n, err := r.source.Read(b[:min(len(b), r.left)])
	r.left -= n
	return n, err
}

// answer is a complete HTTP response. Its body is cut at the requested size.
type answer struct {
	status int
	header http.Header
	body   []byte
	last   bool // the connection is not reusable
}

func (p *prober) probeHTTP(ctx context.Context) (Outcome, int) {
	if p.request == nil {
		p.request = p.check.http.request(p.host.spec.hostname)
	}
	if _, err := p.connect(ctx); err != nil {
		return p.failure(err), 0
	}
	// An upstream may answer and close before it has read everything. The response
	// counts.
	_, failed := p.conn.Write(p.request)
	if isTimeout(failed) {
		return p.failure(failed), 0
	}
	r := readers.Get().(*reader)
	r.source = p.conn
	r.buffered.Reset(r)
	a, err := readAnswer(r, p.check.http)
	r.source = nil
	readers.Put(r)
	if err != nil {
		return p.failure(err), 0
	}
	if a.last || failed != nil || !p.check.reuse {
		p.drop()
	}
	return p.check.http.judge(a.status, a.header, a.body), a.status
}

// readAnswer reads a final response to the end.
func readAnswer(r *reader, h *httpCheck) (answer, error) {
	request := &http.Request{Method: h.method}
	r.left = maxHeader
	for {
		response, err := http.ReadResponse(r.buffered, request) //nolint:bodyclose // it reads our connection, so there is nothing to free
		if err != nil {
			return answer{}, err
		}
		if response.ProtoMajor != 1 || response.StatusCode < 100 {
			return answer{}, fmt.Errorf("%w: %s %s", errNotHTTP1, response.Proto, response.Status)
		}
		if response.StatusCode/100 == 1 && response.StatusCode != http.StatusSwitchingProtocols {
			continue // the final response follows
		}
		return finish(r, h, response)
	}
}

func finish(r *reader, h *httpCheck, response *http.Response) (answer, error) {
	lines := 0
	for _, values := range response.Header {
		lines += len(values)
	}
	if lines > maxHeaders {
		return answer{}, fmt.Errorf("%w: %d headers", errTooLong, lines)
	}
	r.left = maxBody - r.buffered.Buffered()
	a := answer{status: response.StatusCode, header: response.Header, last: response.Close}
	var err error
	if len(h.receive) > 0 {
		if a.body, err = io.ReadAll(io.LimitReader(response.Body, int64(h.receiveBuffer))); err != nil {
			return answer{}, err
		}
	}
	if err := discard(response.Body); err != nil {
		return answer{}, err
	}
	a.last = a.last || r.buffered.Buffered() > 0 || a.status == http.StatusSwitchingProtocols
	return a, nil
}

// discard reads to the end. (io.Copy would bypass the limit.)
func discard(r io.Reader) error {
	if r == http.NoBody {
		return nil
	}
	b := discardBytes.Get().(*[4096]byte)
	defer discardBytes.Put(b)
	for {
		_, err := r.Read(b[:])
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
