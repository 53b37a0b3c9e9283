package duration_test

import (
	"strings"
	"testing"
	"time"

	"hdsd/internal/duration"
)

func TestParse(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"30d": 30 * day, "90d": 90 * day, "1h30m": 90 * time.Minute, "500ms": 500 * time.Millisecond, "0": 0, "0s": 0, "0d": 0, "1.5d": 36 * time.Hour,
		"1w": 7 * day, "1w2d12h": 9*day + 12*time.Hour, "0.5s": time.Second / 2, ".5h": 30 * time.Minute, "1µs": 1000, "7776000s": 90 * day, "106751d": 106751 * day,
	} {
		if got, err := duration.Parse(text); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", text, got, err, want)
		}
	}
}

func TestWhatIsNoDuration(t *testing.T) {
	for text, want := range map[string]string{
		"": "is empty", "1.5": "write 1.5s for seconds", "30": "has no unit", "1h30": "has no unit after 30", "-1s": "is negative", "-1d": "is negative",
		"1y": `unknown unit "y"`, "3 d": `unknown unit " d"`, "3M": `unknown unit "M"`, "1d-1h": `unknown unit "d-"`, "d": "is not a duration", "+": "is not a duration", "1..5s": "has no unit",
		"106752d": "is too long", "16000w": "is too long", "99999999999999999999d": "is too long", "106751d23h48m": "is too long", "9223372037s": "is too long",
		strings.Repeat("1s", 51): "too many characters",
	} {
		if got, err := duration.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v, want %q", text, got, err, want)
		}
	}
}

// What Go reads means the same, what is read is not negative, and what Go writes of it
// is read again.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"30d", "1w2d", "1h30m", "1.5", "-1h", "106751d23h47m16.854775807s", "+5s", "0", ".d", "1e3s"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := duration.Parse(text)
		if want, gos := time.ParseDuration(text); gos == nil && want >= 0 && text[0] != '-' && len(text) <= 100 {
			if err != nil && text != "+0" || err == nil && got != want {
				t.Errorf("%q: %v, %v, want %v", text, got, err, want)
			}
		}
		if err != nil {
			return
		}
		if again, err := duration.Parse(got.String()); got < 0 || err != nil || again != got {
			t.Errorf("%q: %v, again %v, %v", text, got, again, err)
		}
	})
}
