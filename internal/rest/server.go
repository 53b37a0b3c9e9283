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
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Server reads requests whole before it answers them.
type Server struct {
	// Paths has the handler of each path, which gets a request and its body.
	Paths map[string]func(*http.Request, []byte) (Answer, error)

	// Methods are the methods that are served. Default: POST.
	Methods []string

	// MaxBytes is the size of the largest body.
	MaxBytes int

	// MaxBytesField is the configuration field of MaxBytes; empty if none sets it.
	MaxBytesField string

	// Most, if not nil, gives the size of the largest body of one request, where that
	// is less than MaxBytes.
	Most func(*http.Request) int

	// Budget, if not nil, has the bytes of bodies that are read or processed.
	Budget *Budget

	// ReadTimeout bounds how long a client may take to send a body.
	// Default: 10 s.
	ReadTimeout time.Duration

	// WriteTimeout bounds how long a client may take to read an answer, once there is
	// one. Default: 2 min.
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
	if err := s.Budget.turn(r.Context(), len(body), &done); err != nil {
		return nil, err
	}
	return serve(r, body)
}

// setReadDeadline gives the client the time to send from now on. Only a writer that is not on a
// network has no deadlines.
func (s *Server) setReadDeadline(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(cmp.Or(s.ReadTimeout, 10*time.Second)))
}

// readAll reads a body of some length, or of one that is not known, which is negative. It
// does not grow what it has read over and over, which would leave it several times in memory.
func readAll(from io.Reader, length int64) ([]byte, error) {
	if length >= 0 {
		body := make([]byte, length)
		_, err := io.ReadFull(from, body)
		return body, err
	}
	parts, err := mem.ReadAll(from, mem.DefaultBufferPool())
	defer parts.Free()
	if err != nil {
		return nil, err
	}
	return parts.Materialize(), nil
}

// raise tells how to take larger requests, where that is a matter of configuration.
func (s *Server) raise(most int) string {
	if most < s.MaxBytes || s.MaxBytesField == "" {
		return ""
	}
	return ", or raise " + s.MaxBytesField
}

// body reads a request of bounded size, within the budget. It refuses one that is
// announced as larger before it reads it. Its bytes count until done is called.
func (s *Server) body(w http.ResponseWriter, r *http.Request) (body []byte, done func(), err error) {
	most := s.MaxBytes
	if s.Most != nil {
		most = min(most, s.Most(r))
	}
	if r.ContentLength > int64(most) {
		return nil, nil, TooLarge("a request may have up to %d bytes, and this one has %d: make it smaller"+s.raise(most), most, r.ContentLength)
	}
	length := r.ContentLength
	if length < 0 {
		length = int64(most)
	}
	if done, err = s.Budget.take(r, length); err != nil {
		return nil, nil, err
	}
	s.setReadDeadline(w)
	body, err = readAll(http.MaxBytesReader(w, r.Body, int64(most)), r.ContentLength)
	if err == nil {
		return body, done, nil
	}
	done()
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, nil, TooLarge("a request may have up to %d bytes: make it smaller"+s.raise(most), most)
	}
	return nil, nil, status.Errorf(codes.InvalidArgument, "reading the request: %v", err)
}
