package rest

import (
	"cmp"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Server reads requests whole before it answers them.
type Server struct {
	// Paths has the handler of each path, which gets a request and its body. Neither the handler
	// nor its Answer may use the body after the handler has returned.
	Paths map[string]func(*http.Request, []byte) (Answer, error)

	// Methods are the accepted methods. Default: POST.
	Methods []string

	// MaxBytes is the size of the largest body.
	MaxBytes int

	// MaxBytesField is the configuration field of MaxBytes; empty if none sets it.
	MaxBytesField string

	// Limit, if not nil, returns the bound of a request's body, if that is less than MaxBytes.
	Limit func(*http.Request) int

	// Budget, if not nil, bounds the bytes of bodies being read or processed.
	Budget *Budget

	// ReadTimeout bounds the time for a client to send a body. Default: 10 s.
	ReadTimeout time.Duration

	// WriteTimeout bounds the time for a client to read an answer, once there is one. Default: 2
	// min.
	WriteTimeout time.Duration
}

// Answer writes an answer in JSON. A nil Answer means that the client already has it.
type Answer func(http.ResponseWriter)

// Text is an answer whose text comes in parts.
func Text(parts ...[]byte) Answer {
	return func(w http.ResponseWriter) {
		size := 0
		for _, part := range parts {
			size += len(part)
		}
		w.Header().Set("Content-Length", strconv.Itoa(size))
		for _, part := range parts {
			if _, err := w.Write(part); err != nil {
				return // the client has gone
			}
		}
	}
}

// Unmarshal decodes a body as a message.
func Unmarshal(o protojson.UnmarshalOptions, body []byte, m proto.Message) error {
	if err := o.Unmarshal(body, m); err != nil {
		return status.Errorf(codes.InvalidArgument, "the request is no %s in proto3 JSON: %v", m.ProtoReflect().Descriptor().FullName(), err)
	}
	return nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, err := s.answer(w, r)
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(cmp.Or(s.WriteTimeout, 2*time.Minute))) // as in answer
	switch {
	case err != nil:
		s.Budget.refused(r, err)
		WriteError(w, err)
	case answer == nil:
		w.WriteHeader(http.StatusNotModified)
	default:
		w.Header().Set("Content-Type", "application/json")
		answer(w)
	}
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request) (Answer, error) {
	s.setReadDeadline(w)
	w.Header().Set("Connection", "close") // unless the request is read to its end
	serve := s.Paths[r.URL.Path]
	if serve == nil {
		return nil, status.Errorf(codes.NotFound, "nothing is served at %s: use %s", r.URL.Path, strings.Join(slices.Sorted(maps.Keys(s.Paths)), " or "))
	}
	methods := s.Methods
	if methods == nil {
		methods = []string{http.MethodPost}
	}
	if !slices.Contains(methods, r.Method) {
		return nil, MethodError(w, r, methods...)
	}
	body, done, err := s.body(w, r)
	if err != nil {
		return nil, err
	}
	defer func() { done() }()
	w.Header().Del("Connection")
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // it would also end the request's context
	if err := s.Budget.turn(r, len(body), &done); err != nil {
		return nil, err
	}
	return serve(r, body)
}

// setReadDeadline starts the client's time to send. Only a writer that is not on a network has
// no deadlines.
func (s *Server) setReadDeadline(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(cmp.Or(s.ReadTimeout, 10*time.Second)))
}

// growth is the factor by which the buffer of a body of unknown length grows.
const growth = 8

// readAll reads a body of a given or, if negative, unknown length. Its buffer grows in few
// steps, and is never twice in memory if it is large: large returns the memory for the largest
// body.
func readAll(r io.Reader, length int64, large func() []byte) (body []byte, err error) {
	switch {
	case length > largeBody:
		body = large()[:length]
	case length >= 0:
		body = make([]byte, length)
	default:
		return readOn(r, large)
	}
	_, err = io.ReadFull(r, body)
	return body, err
}

func readOn(r io.Reader, large func() []byte) ([]byte, error) {
	body := make([]byte, 0, smallBody)
	for {
		n, err := r.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if errors.Is(err, io.EOF) {
			return body, nil
		}
		if err != nil {
			return nil, err
		}
		if len(body) < cap(body) {
			continue
		}
		if len(body) < largeBody {
			body = append(make([]byte, 0, growth*cap(body)), body...)
		} else {
			body = append(large(), body...)
		}
	}
}

// raise returns the advice for larger requests, if the limit is configurable.
func (s *Server) raise(limit int) string {
	if limit < s.MaxBytes || s.MaxBytesField == "" {
		return ""
	}
	return ", or raise " + s.MaxBytesField
}

// body reads a request of bounded size, within the budget. It refuses one that is announced as
// larger before it reads it. Its bytes count until done is called.
func (s *Server) body(w http.ResponseWriter, r *http.Request) (body []byte, done func(), err error) {
	limit := s.MaxBytes
	if s.Limit != nil {
		limit = min(limit, s.Limit(r))
	}
	if r.ContentLength > int64(limit) {
		return nil, nil, TooLarge("a request may have up to %d bytes, and this one has %d: make it smaller"+s.raise(limit), limit, r.ContentLength)
	}
	length := r.ContentLength
	if length < 0 {
		length = int64(limit)
	}
	if length > largeBody {
		length = int64(s.MaxBytes) // the size of its memory
	}
	if done, err = s.Budget.acquire(r, length); err != nil {
		return nil, nil, err
	}
	s.setReadDeadline(w)
	body, err = readAll(http.MaxBytesReader(w, r.Body, int64(limit)), r.ContentLength, func() []byte {
		return s.Budget.memory(s.MaxBytes+1, &done)
	})
	if err == nil {
		return body, done, nil
	}
	done()
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, nil, TooLarge("a request may have up to %d bytes: make it smaller"+s.raise(limit), limit)
	}
	return nil, nil, status.Errorf(codes.InvalidArgument, "reading the request: %v", err)
}
