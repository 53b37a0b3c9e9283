package printable

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestWhatIsShown(t *testing.T) {
	for text, want := range map[string]struct{ text, cell string }{
		"":                        {"", ""},
		"web-1 größe 支付 👩\u200d🚀": {"web-1 größe 支付 👩\u200d🚀", "web-1 größe 支付 👩\u200d🚀"},
		"\x1b[2Jgone\a":           {`\x1b[2Jgone\a`, `\x1b[2Jgone\a`},
		"a\r\n\tb\x7f":            {`a\r\n\tb\x7f`, `a\r\n\tb\x7f`},
		"\u202egnp.exe":           {`\u202egnp.exe`, `\u202egnp.exe`},
		"\u2066x\u2069\u061c":     {`\u2066x\u2069\u061c`, `\u2066x\u2069\u061c`},
		"\u009b31m\u2028":         {`\u009b31m\u2028`, `\u009b31m\u2028`},
		"\x9b31m":                 {`\x9b31m`, `\x9b31m`},
		"\ufffd":                  {"\ufffd", "\ufffd"},
		"\U000e0041":              {`\U000e0041`, `\U000e0041`},
		"=cmd|' /C calc'!A0":      {"=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"},
		"+1+1":                    {"+1+1", "'+1+1"},
		"-1.5":                    {"-1.5", "-1.5"},
		"-x":                      {"-x", "'-x"},
		"@SUM(A1)":                {"@SUM(A1)", "'@SUM(A1)"},
		"  =1+1":                  {"  =1+1", "'  =1+1"},
		"＝1+1":                    {"＝1+1", "'＝1+1"},
		"\t=1":                    {`\t=1`, `\t=1`},
	} {
		if got := Text(text); got != want.text {
			t.Errorf("Text(%q) = %q, want %q", text, got, want.text)
		}
		if got := Cell(text); got != want.cell {
			t.Errorf("Cell(%q) = %q, want %q", text, got, want.cell)
		}
		if got := Is(text); got != (want.text == text) {
			t.Errorf("Is(%q) = %t", text, got)
		}
	}
	if got := Lines("a\n\x1bb\n"); got != "a\n\\x1bb\n" {
		t.Errorf("Lines: %q", got)
	}
}

// FuzzText: nothing that acts is left, and what is printable stays.
func FuzzText(f *testing.F) {
	for _, text := range []string{"web", "\x1b[2J", "\u202e", "=1", "\xff\xfe", "a\nb", "\u200d"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name, got := range map[string]string{"Text": Text(text), "Cell": Cell(text), "Lines": strings.ReplaceAll(Lines(text), "\n", "")} {
			if !Is(got) {
				t.Errorf("%s(%q) = %q", name, text, got)
			}
			for _, r := range got {
				if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
					t.Errorf("%s(%q) leaves %q", name, text, r)
				}
			}
		}
		if Is(text) && (Text(text) != text || Lines(text) != text) {
			t.Errorf("%q becomes %q, %q", text, Text(text), Lines(text))
		}
		if cell := Cell(text); strings.ContainsAny(strings.TrimSpace(cell + "x")[:1], "=@") {
			t.Errorf("a cell is %q", cell)
		}
	})
}

// FuzzJSON: JSON stays JSON, and means the same.
func FuzzJSON(f *testing.F) {
	for _, text := range []string{`{"a": "\u202e"}`, "{\"a\": \"\u202e\u009b\x7f\"}\n", "\"\U000e0041\"", `["\\` + "\u2028" + `"]`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var before, after any
		if !utf8.Valid(text) || json.Unmarshal(text, &before) != nil {
			t.Skip()
		}
		got := JSON(text)
		if err := json.Unmarshal(got, &after); err != nil || !reflect.DeepEqual(before, after) {
			t.Errorf("%q became %q: %v", text, got, err)
		}
		if !Is(strings.NewReplacer("\n", "", "\r", "", "\t", "").Replace(string(got))) {
			t.Errorf("%q became %q", text, got)
		}
	})
}
