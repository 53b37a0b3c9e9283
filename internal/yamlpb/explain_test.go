package yamlpb

import (
	"strings"
	"testing"
)

func TestRulesSayWhatToDo(t *testing.T) {
	for says, want := range map[string]string{
		"value is required":                                   "is missing: give it a value",
		"value length must be at least 1 bytes":               "is empty or missing: give it a value",
		"value length must be at least 44 runes":              "is too short: write at least 44 characters",
		"value must be greater than 0s":                       "is too small: write more than 0s",
		"value must be greater than or equal to 1":            "is too small: write 1 or more",
		"value must be inside range [1, 3]":                   "is out of range: write from 1 to 3",
		"value must be inside range [0s, 1h28m)":              "is out of range: write at least 0s, and less than 1h28m",
		"value must be inside range (0, 65535)":               "is out of range: write more than 0, and less than 65535",
		"value must be outside range (0s, 1ms)":               "is out of range: write no value between 0s and 1ms",
		"value must contain at least 1 item(s)":               "has too few elements: give 1 or more",
		"value must be in list [http https]":                  "is not possible: write one of http https",
		`value does not match regex pattern "^[^\x00\n\r]*$"`: "holds a control character, such as a line break: take it out",
		"what nobody thought of":                              "what nobody thought of",
	} {
		if got := explain(says); got != want {
			t.Errorf("%q became %q, want %q", says, got, want)
		}
	}
	for _, rule := range rules {
		if what, advice, found := strings.Cut(rule.advice, ": "); !found && !strings.Contains(rule.advice, "cannot") || what == "" || advice == "" {
			t.Errorf("%s: %q gives no advice", rule.pattern, rule.advice)
		}
	}
}
