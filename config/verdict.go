package config

import (
	"fmt"
	"math"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	configv1 "hdsd/gen/hdsd/config/v1"
)

// Bounds of HTTP status codes.
const (
	minCode = 100
	maxCode = 599
)

// verdict checks the rules for verdicts of endpoints with redundancy checkers each.
func (c *checks) verdict(field string, verdict *configv1.Verdict, redundancy uint32, interval time.Duration) {
	c.duration(field+".staleness", verdict.GetStaleness(), 2*interval, maxWait)
	c.duration(field+".warm_up", verdict.GetWarmUp(), time.Millisecond, maxWait)
	c.duration(field+".quorum_hold", verdict.GetQuorumHold(), 0, maxWait)
	c.degradedWhen(field+".degraded_when", verdict.GetDegradedWhen())
	c.doubt(field, verdict)
	c.damping(field+".damping", verdict.GetDamping())
	c.duration(field+".mass_failure.hold", verdict.GetMassFailure().GetHold(), 0, maxWait)

	switch verdict.GetRule() {
	case configv1.Rule_AT_LEAST:
		if minimum := verdict.GetAtLeast(); minimum == 0 || minimum > redundancy {
			c.add(field+".at_least", "is %d: say how many checkers it takes, from 1 to the %d that each endpoint has", minimum, redundancy)
		}
	case configv1.Rule_SHARE:
		if share := verdict.GetShare(); !(share > 0 && share < 1) { // this refuses NaN, too
			c.add(field+".share", "is %g: it takes more than 0 and less than 1, such as 0.18", share)
		}
	}
	if verdict.GetAtLeast() != 0 && verdict.GetRule() != configv1.Rule_AT_LEAST {
		c.add(field+".at_least", "is the parameter of AT_LEAST, and the rule is %s: remove it", verdict.GetRule())
	}
	if verdict.GetShare() != 0 && verdict.GetRule() != configv1.Rule_SHARE {
		c.add(field+".share", "is the parameter of SHARE, and the rule is %s: remove it", verdict.GetRule())
	}
	switch initial := verdict.GetInitialHealth(); initial {
	case corev3.HealthStatus_UNKNOWN, corev3.HealthStatus_UNHEALTHY:
	default:
		c.add(field+".initial_health", "cannot be %s: use UNKNOWN (Envoy sends traffic) or UNHEALTHY", initial)
	}
}

// doubt checks the rules for doubting checkers.
func (c *checks) doubt(field string, verdict *configv1.Verdict) {
	q, p := verdict.GetDoubt(), verdict.GetPathCut()
	c.share(field+".doubt.share", q.GetShare())
	c.share(field+".doubt.release", q.GetRelease())
	c.duration(field+".doubt.release_after", q.GetReleaseAfter(), time.Millisecond, maxWait)
	c.share(field+".path_cut.share", p.GetShare())
	c.atLeastOne(field+".doubt.disagreements", q.GetDisagreements())
	c.atLeastOne(field+".path_cut.disagreements", p.GetDisagreements())
	c.atLeastOne(field+".damping.half_life_rounds", verdict.GetDamping().GetHalfLifeRounds())
}

// share checks a share: above 0, at most 1.
func (c *checks) share(field string, share float64) {
	if c.root.Has(field) && !(share > 0 && share <= 1) { // this refuses NaN, too
		c.add(field, "is %g: it takes more than 0 and at most 1, such as 0.2 for a fifth", share)
	}
}

func (c *checks) atLeastOne(field string, n uint32) {
	if c.root.Has(field) && n == 0 {
		c.add(field, "cannot be 0: leave it out for the default")
	}
}

// release checks that a checker that is believed again is not doubted at once.
func (c *checks) release(field string, verdict *configv1.Verdict) {
	q, p := verdict.GetDoubt(), verdict.GetPathCut()
	release := orDefault(q.GetRelease(), defaultRelease)
	if share := orDefault(q.GetShare(), defaultDoubtShare); c.root.Has(field+".doubt") && release > share {
		c.add(field+".doubt", "releases at %g, which is not below the share of %g: a released checker would be doubted again at once", release, share)
	}
	if share := orDefault(p.GetShare(), defaultPathShare); c.root.Has(field+".path_cut") && release > share {
		c.add(field+".path_cut", "has a share of %g, and doubt.release is %g, which is not below: a released path would be cut again at once", share, release)
	}
}

func (c *checks) damping(field string, d *configv1.Damping) {
	if d == nil {
		return
	}
	suppress, reuse := orDefault(d.GetSuppress(), defaultSuppress), orDefault(d.GetReuse(), defaultReuse)
	switch {
	case !(reuse >= 1 && suppress <= 1e6): // this refuses NaN, too
		c.add(field, "goes from %g down to %g: both must be from 1 to 1000000, where each time that an endpoint goes down counts 1000", suppress, reuse)
	case !(reuse < suppress):
		c.add(field, "has a reuse of %g, which is not below suppress, %g: an endpoint could never be held", reuse, suppress)
	case suppress >= 16*reuse:
		c.add(field, "has a suppress of %g, but no penalty grows above 16 times reuse, %g: an endpoint could never be held", suppress, 16*reuse)
	}
	if rounds := d.GetHalfLifeRounds(); rounds > 100_000 {
		c.add(field+".half_life_rounds", "is %d: up to 100000 is possible", rounds)
	}
	if d.GetDisabled() && !proto.Equal(d, &configv1.Damping{Disabled: true}) {
		c.add(field, "is disabled, but has settings: remove one of the two")
	}
}

func orDefault(value, otherwise float64) float64 {
	if value == 0 {
		return otherwise
	}
	return value
}

// degradedWhen checks the status codes. Without any, no vote counts as DEGRADED.
func (c *checks) degradedWhen(field string, d *configv1.DegradedWhen) {
	for i, value := range d.GetHttpStatusCode() {
		if _, _, err := StatusCodes(value); err != nil {
			c.add(fmt.Sprintf("%s.http_status_code[%d]", field, i), "%s", err)
		}
	}
}

// StatusCodes reads one entry of degraded_when: a status code, or a range with a start
// and an exclusive end.
func StatusCodes(value *structpb.Value) (first, last int, err error) {
	switch v := value.GetKind().(type) {
	case *structpb.Value_NumberValue:
		first, last = whole(v.NumberValue), whole(v.NumberValue)
	case *structpb.Value_StructValue:
		fields := v.StructValue.GetFields()
		start, hasStart := fields["start"].GetKind().(*structpb.Value_NumberValue)
		end, hasEnd := fields["end"].GetKind().(*structpb.Value_NumberValue)
		if !hasStart || !hasEnd || len(fields) != 2 {
			return 0, 0, fmt.Errorf("is no range: a range has a start and an end, both numbers, such as {start: 500, end: 504}")
		}
		first, last = whole(start.NumberValue), whole(end.NumberValue)-1
	default:
		return 0, 0, fmt.Errorf("is neither a status code, such as 429, nor a range of them, such as {start: 500, end: 504}")
	}
	switch {
	case first < minCode || last < minCode-1 || last > maxCode:
		return 0, 0, fmt.Errorf("is not within %d to %d, where HTTP status codes are", minCode, maxCode)
	case last < first:
		return 0, 0, fmt.Errorf("is an empty range: its end is not in it, so write one more than the last code")
	}
	return first, last, nil
}

// whole returns a whole number, or -1 for any other.
func whole(n float64) int {
	if n != math.Trunc(n) || math.Abs(n) > 1e6 {
		return -1
	}
	return int(n)
}

// InheritVerdict returns the rules of a policy: its own, and the common ones for each
// duration or message that it does not set.
func InheritVerdict(specific, common *configv1.Verdict) *configv1.Verdict {
	if specific == nil {
		return common
	}
	merged := proto.CloneOf(specific)
	from, to := common.ProtoReflect(), merged.ProtoReflect()
	fields := to.Descriptor().Fields()
	for i := range fields.Len() {
		if f := fields.Get(i); f.Message() != nil && !to.Has(f) && from.Has(f) {
			to.Set(f, from.Get(f))
		}
	}
	return merged
}
