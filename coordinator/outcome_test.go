package coordinator

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/api"
	"hdsd/coordinator/union"
	"hdsd/internal/reason"
)

// TestOutcomeOfAnAcceptance by the answers of the replicas.
func TestOutcomeOfAnAcceptance(t *testing.T) {
	nothing := reason.New(codes.FailedPrecondition, reason.NothingHeld, "nothing")
	changed := reason.New(codes.FailedPrecondition, reason.HoldChanged, "something else")
	for _, c := range []struct {
		name  string
		errs  []error
		taken string
		code  codes.Code
		text  string
	}{
		{"all", []error{nil, nil}, "r0", codes.OK, ""},
		{"one holds nothing", []error{nothing, nil}, "r1", codes.OK, ""},
		{"none holds anything", []error{nothing, nothing}, "", codes.OK, ""},
		{"not on disk", []error{&api.NotDurable{Reason: "full"}, nothing}, "r0", codes.OK, ""},
		{"one holds something else", []error{nil, changed}, "r0", codes.FailedPrecondition, "r1 (something else), but on r0"},
		{"one is away", []error{nil, changed, errors.New("away")}, "r0", codes.Unavailable, "r1 (something else), r2 (away), but on r0"},
		{"none takes it", []error{status.Error(codes.Unavailable, "away")}, "", codes.Unavailable, "not accepted on r0 (away): repeat"},
	} {
		var answers []union.Accepted
		for i, err := range c.errs {
			answers = append(answers, union.Accepted{Replica: "r" + string(rune('0'+i)), Err: err})
		}
		taken, err := outcomeOf("mesh", answers)
		if status.Code(err) != c.code || err != nil && !strings.Contains(err.Error(), c.text) || (taken == nil) != (c.taken == "") || taken != nil && taken.Replica != c.taken {
			t.Errorf("%s: %+v, %v", c.name, taken, err)
		}
	}
}
