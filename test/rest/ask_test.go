package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
)

// do asks over HTTP and holds the answer against the document.
func (s *site) do(method, target, body string) *Answer {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.HTTPAddress()+target, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	a := &Answer{Method: method, Target: target, Status: response.StatusCode, Header: response.Header, Body: text}
	if err := s.document.Check(a); err != nil {
		s.t.Errorf("%s %s: %d: %v\n%s", method, target, a.Status, err, text)
	}
	return a
}

// get asks, and reads what must be an answer.
func (s *site) get(target string) map[string]any {
	s.t.Helper()
	a := s.do(http.MethodGet, target, "")
	if a.Status != http.StatusOK {
		s.t.Fatalf("GET %s: %d %s", target, a.Status, a.Body)
	}
	return object(s, a.Body)
}

// refused asks what must be refused with a status, and gives the message.
func (s *site) refused(target string, status int) string {
	s.t.Helper()
	a := s.do(http.MethodGet, target, "")
	if a.Status != status {
		s.t.Errorf("GET %s: %d, want %d: %s", target, a.Status, status, a.Body)
		return ""
	}
	message, _ := object(s, a.Body)["message"].(string)
	return message
}

func object(s *site, text []byte) (o map[string]any) {
	s.t.Helper()
	if err := json.Unmarshal(text, &o); err != nil {
		s.t.Fatalf("%v in %s", err, text)
	}
	return o
}

// items are those of the list in an answer.
func items(answer map[string]any) []any {
	for name, list := range answer {
		if found, ok := list.([]any); ok && name != "nextPageToken" {
			return found
		}
	}
	return nil
}

// watch reads server-sent events until enough have come.
func (s *site) watch(target, lastEventID string, enough func([]Event) bool) []Event {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.HTTPAddress()+target, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if lastEventID != "" {
		request.Header.Set("Last-Event-ID", lastEventID)
	}
	response, err := (&http.Client{Transport: s.client.Transport}).Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	var text bytes.Buffer
	for part := make([]byte, 32<<10); !enough(Events(text.String())); {
		n, err := response.Body.Read(part)
		text.Write(part[:n])
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			s.t.Fatalf("%v after %s", err, text.String())
		}
	}
	a := &Answer{Method: http.MethodGet, Target: target, Status: response.StatusCode, Header: response.Header, Body: text.Bytes()}
	if err := s.document.Check(a); err != nil {
		s.t.Errorf("GET %s: %v", target, err)
	}
	return Events(text.String())
}
