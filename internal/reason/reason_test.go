package reason_test

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/internal/reason"
)

func TestReasons(t *testing.T) {
	foreign, err := status.New(codes.NotFound, "x").WithDetails(&errdetails.ErrorInfo{Reason: "THEIRS", Domain: "other"})
	if err != nil {
		t.Fatal(err)
	}
	for want, said := range map[string]*status.Status{
		"ROLE_MISSING":     status.Convert(reason.New(codes.PermissionDenied, reason.RoleMissing, "no", "role", "VIEWER")),
		"INVALID_ARGUMENT": status.New(codes.InvalidArgument, "bad"),
		"UNKNOWN":          status.Convert(errors.New("plain")),
		"NOT_FOUND":        foreign,
		"LIMIT_REACHED":    reason.With(status.New(codes.ResourceExhausted, "full"), reason.LimitReached),
	} {
		complete := reason.Complete(said)
		if got := reason.Of(fmt.Errorf("wrapped: %w", complete.Err())); got != want {
			t.Errorf("%v: reason %q, want %q", said, got, want)
		}
		if complete.Code() != said.Code() || complete.Message() != said.Message() {
			t.Errorf("%v became %v", said, complete)
		}
		if again := reason.Complete(complete); len(again.Details()) != len(complete.Details()) {
			t.Errorf("%v got a second reason", again)
		}
	}
	if got := reason.Of(nil); got != "" {
		t.Errorf("no error: %q", got)
	}
	if fine := reason.Complete(nil); fine.Code() != codes.OK || len(fine.Details()) != 0 {
		t.Errorf("no error: %v", fine)
	}
	role := status.Convert(reason.New(codes.PermissionDenied, reason.RoleMissing, "no", "role", "VIEWER")).Details()[0].(*errdetails.ErrorInfo)
	if role.GetMetadata()["role"] != "VIEWER" || role.GetDomain() != reason.Domain {
		t.Errorf("details: %v", role)
	}
}

// TestTheDocumentListsEachReason, and no other.
func TestTheDocumentListsEachReason(t *testing.T) {
	code, err := os.ReadFile("reason.go")
	if err != nil {
		t.Fatal(err)
	}
	document, err := os.ReadFile("../../docs/reference/api.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(document), "### Reasons")
	table, _, _ := strings.Cut(rest, "###")
	listed := strings.Count(table, "\n| `")
	constants := regexp.MustCompile(`(?m)^\t[A-Z]\w+ += "([A-Z_]+)"`).FindAllStringSubmatch(string(code), -1)
	if len(constants) == 0 || listed != len(constants) {
		t.Errorf("%d reasons in the code, %d in the document", len(constants), listed)
	}
	for _, c := range constants {
		if !strings.Contains(table, "| `"+c[1]+"` |") {
			t.Errorf("the document has no row for %s", c[1])
		}
	}
}
