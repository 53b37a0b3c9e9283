package rest_test

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/internal/rest"
)

func TestStatuses(t *testing.T) {
	for want, err := range map[int]error{
		400: status.Error(codes.FailedPrecondition, "x"),
		401: status.Error(codes.Unauthenticated, "x"),
		403: status.Error(codes.PermissionDenied, "x"),
		404: status.Error(codes.NotFound, "x"),
		409: status.Error(codes.AlreadyExists, "x"),
		413: fmt.Errorf("while reading: %w", rest.TooLarge("x")),
		415: rest.Errorf(415, codes.InvalidArgument, "x"),
		429: status.Error(codes.ResourceExhausted, "x"),
		500: errors.New("x"),
		503: status.Error(codes.Unavailable, "x"),
		504: status.Error(codes.DeadlineExceeded, "x"),
	} {
		recorder := httptest.NewRecorder()
		rest.WriteError(recorder, err)
		if recorder.Code != want {
			t.Errorf("%v: %d, want %d", err, recorder.Code, want)
		}
		if after := recorder.Header().Get("Retry-After"); (after == "5") != (want == 429) {
			t.Errorf("%v: Retry-After: %q", err, after)
		}
		if text := recorder.Body.String(); !strings.HasPrefix(text, fmt.Sprintf(`{"code":%d,"message":"`, status.Code(err))) ||
			!strings.Contains(text, `x","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"`) || !strings.HasSuffix(text, "\"}]}\n") {
			t.Errorf("%v: %q", err, text)
		}
	}
}

// TestTooLargeOverGRPC checks the status that grpc sends.
func TestTooLargeOverGRPC(t *testing.T) {
	if said := status.Convert(rest.TooLarge("up to %d", 3)); said.Code() != codes.ResourceExhausted || said.Message() != "up to 3" {
		t.Error(said)
	}
}

func TestBrief(t *testing.T) {
	for _, short := range []string{"", "x", strings.Repeat("x", 1000)} {
		if rest.Brief(short) != short {
			t.Errorf("%.20q is cut", short)
		}
	}
	for _, long := range []string{strings.Repeat("x", 1001), strings.Repeat("é", 600), "a" + strings.Repeat("€", 100_000)} {
		got := rest.Brief(long)
		if len(got) > 1010 || !utf8.ValidString(got) || !strings.HasPrefix(long, got[:399]) || !strings.HasSuffix(long, got[len(got)-399:]) {
			t.Errorf("%.20q…: %q", long, got)
		}
	}
}
