package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// Document is an OpenAPI document, taken strictly, and what of it was seen.
type Document struct {
	spec *openapi3.T

	mu   sync.Mutex
	seen map[string]bool // as "GET /v1/clusters 200" and "GET /v1/clusters ?pageSize"; guarded by mu
}

// strict is the document that the binary carries, read once.
var strict = sync.OnceValues(func() (*openapi3.T, error) {
	spec, err := openapi3.NewLoader().LoadFromData(hdsdv1.OpenAPIJSON)
	if err != nil {
		return nil, err
	}
	if err := spec.Validate(context.Background()); err != nil {
		return nil, err
	}
	for _, schema := range spec.Components.Schemas {
		forbidMore(schema.Value)
	}
	return spec, nil
})

// Load gives the document, of which nothing was seen. It is valid OpenAPI.
func Load(t testing.TB) *Document {
	t.Helper()
	spec, err := strict()
	if err != nil {
		t.Fatal(err)
	}
	return &Document{spec: spec, seen: map[string]bool{}}
}

// forbidMore has an object's schema allow only the fields that it names.
func forbidMore(s *openapi3.Schema) {
	if s.Properties != nil && s.Type.Is("object") && s.AdditionalProperties.Schema == nil {
		no := false
		s.AdditionalProperties.Has = &no
	}
	for _, kind := range s.OneOf {
		if kind.Ref == "" {
			forbidMore(kind.Value)
		}
	}
}

// Answer is what came back over HTTP.
type Answer struct {
	Method, Target string
	Status         int
	Header         http.Header
	Body           []byte
}

// Check tells how an answer differs from the document. Of a path that it does
// not have, nothing but 404 is right.
func (d *Document) Check(a *Answer) error {
	path, query, _ := strings.Cut(a.Target, "?")
	item := d.spec.Paths.Value(path)
	if item == nil {
		if a.Status == http.StatusNotFound {
			return d.content(d.spec.Components.Responses["NotFound"].Value, a)
		}
		return fmt.Errorf("%s is not in the document, and is answered %d", path, a.Status)
	}
	operation := item.GetOperation(a.Method)
	if operation == nil { // another method of this path
		for _, operation = range item.Operations() {
			break
		}
		if a.Status != http.StatusMethodNotAllowed {
			return fmt.Errorf("%s %s is not in the document, and is answered %d", a.Method, path, a.Status)
		}
	}
	if a.Status < http.StatusMultipleChoices {
		if err := d.parameters(operation, a.Method+" "+path, query); err != nil {
			return err
		}
	}
	response := operation.Responses.Value(strconv.Itoa(a.Status))
	if response == nil {
		return fmt.Errorf("the status %d is not in the document", a.Status)
	}
	d.note(fmt.Sprintf("%s %s %d", a.Method, path, a.Status))
	return d.content(response.Value, a)
}

// parameters holds the query of a request that was answered against the
// document. An empty one counts as not given.
func (d *Document) parameters(o *openapi3.Operation, name, query string) error {
	given, err := url.ParseQuery(query)
	if err != nil {
		return err
	}
	for key, values := range given {
		p := o.Parameters.GetByInAndName(openapi3.ParameterInQuery, key)
		if p == nil {
			return fmt.Errorf("the parameter %s is not in the document", key)
		}
		d.note(name + " ?" + key)
		if values[0] == "" && p.AllowEmptyValue {
			continue
		}
		if err := p.Schema.Value.VisitJSON(typed(p.Schema.Value, values[0]), openapi3.EnableFormatValidation()); err != nil {
			return fmt.Errorf("the parameter %s=%s: %w", key, values[0], err)
		}
	}
	return nil
}

// typed is a parameter's value as its schema has it.
func typed(s *openapi3.Schema, text string) any {
	if s.Type.Is("array") {
		return []any{text}
	}
	if s.Type.Is("string") {
		return text
	}
	var value any
	if json.Unmarshal([]byte(text), &value) != nil {
		return text
	}
	return value
}

func (d *Document) content(r *openapi3.Response, a *Answer) error {
	for name := range a.Header {
		if strings.HasPrefix(name, "X-Hdsd-") && r.Headers[name] == nil {
			return fmt.Errorf("the header %s is not in the document", name)
		}
	}
	if len(r.Content) == 0 {
		if len(a.Body) > 0 {
			return fmt.Errorf("there is no body in the document, and %q in the answer", a.Body)
		}
		return nil
	}
	kind, _, err := mime.ParseMediaType(a.Header.Get("Content-Type"))
	if err != nil {
		return err
	}
	media := r.Content[kind]
	switch {
	case media == nil:
		return fmt.Errorf("the content type %s is not in the document", kind)
	case kind == "text/event-stream":
		return d.events(media.Schema.Value, a)
	case kind != "application/json":
		return nil
	}
	return visit(media.Schema.Value, a.Body)
}

func visit(s *openapi3.Schema, text []byte) error {
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return fmt.Errorf("%w in %s", err, text)
	}
	return s.VisitJSON(value, openapi3.VisitAsResponse(), openapi3.EnableFormatValidation(), openapi3.MultiErrors())
}

func (d *Document) events(s *openapi3.Schema, a *Answer) error {
	for _, e := range Events(string(a.Body)) {
		text, err := json.Marshal(e)
		if err != nil {
			return err
		}
		if err := visit(s, text); err != nil {
			return fmt.Errorf("the event %s: %w", text, err)
		}
		d.note("event " + e.Event)
	}
	return nil
}

// Event is a server-sent event.
type Event struct {
	Event string          `json:"event"`
	ID    string          `json:"id,omitempty"`
	Data  json.RawMessage `json:"data"`
}

// Events reads a stream as far as it is whole.
func Events(text string) (all []Event) {
	blocks := strings.Split(text, "\n\n")
	for _, block := range blocks[:len(blocks)-1] {
		var e Event
		for line := range strings.SplitSeq(block, "\n") {
			switch name, value, _ := strings.Cut(line, ": "); name {
			case "event":
				e.Event = value
			case "id":
				e.ID = value
			case "data":
				e.Data = append(e.Data, value...)
			}
		}
		if e.Event != "" || e.Data != nil { // else a heartbeat
			all = append(all, e)
		}
	}
	return all
}

func (d *Document) note(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen[what] = true
}

// Unseen lists what the document has and nothing was seen of: operations with
// those of the statuses that are given, parameters, and kinds of event.
func (d *Document) Unseen(statuses ...int) (all []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	want := func(what string) {
		if !d.seen[what] {
			all = append(all, what)
		}
	}
	for path, item := range d.spec.Paths.Map() {
		for method, operation := range item.Operations() {
			for _, status := range statuses {
				if status != http.StatusMethodNotAllowed && operation.Responses.Value(strconv.Itoa(status)) != nil {
					want(fmt.Sprintf("%s %s %d", method, path, status))
				}
			}
			for _, p := range operation.Parameters {
				if p.Value.In == openapi3.ParameterInQuery {
					want(method + " " + path + " ?" + p.Value.Name)
				}
			}
		}
	}
	for _, kind := range d.spec.Components.Schemas["WatchResponse"].Value.OneOf {
		want(fmt.Sprint("event ", kind.Value.Properties["event"].Value.Enum[0]))
	}
	slices.Sort(all)
	return all
}
