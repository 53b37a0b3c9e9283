package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"hdsd/api"
)

// counting gives each answer its number.
type counting struct {
	voted
	answers int
}

func (c *counting) Endpoints(ctx context.Context, q api.EndpointQuery) ([]api.EndpointHealth, bool, error) {
	found, more, err := c.voted.Endpoints(ctx, q)
	c.answers++
	for i := range found {
		found[i].Verdict.Reason = fmt.Sprintf("answer %d", c.answers)
	}
	return found, more, err
}

// failing keeps what it is given, as HTTP/2 may for a client that has gone.
type failing struct {
	http.ResponseWriter
	kept   []byte
	copied string
}

func (f *failing) Write(text []byte) (int, error) {
	f.kept, f.copied = text, string(text)
	return 0, errors.New("the client has gone")
}

// TestTextsAreUsedAgain only when nobody reads them any more, whatever their lengths.
func TestTextsAreUsedAgain(t *testing.T) {
	c := &counting{voted: voted{fleet{n: 10_000}}}
	handler, err := api.NewService(c).Handler()
	if err != nil {
		t.Fatal(err)
	}
	sizes := []int{10_000, 3000, 10}
	for range 2 {
		for _, size := range sizes {
			gone := &failing{ResponseWriter: httptest.NewRecorder()}
			handler.ServeHTTP(gone, httptest.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprint("/v1/endpoints?pageSize=", size), nil))
			for _, size := range sizes {
				text := string(read(t, accepting(t, handler, fmt.Sprint("/v1/endpoints?pageSize=", size), "").Body))
				if n := strings.Count(text, fmt.Sprintf(`"reason":"answer %d"`, c.answers)); n != size || strings.Count(text, `"reason"`) != size {
					t.Errorf("%d rows of %d are of this answer", n, size)
				}
			}
			if string(gone.kept) != gone.copied {
				t.Error("a text has changed while it was sent")
			}
		}
	}
}
