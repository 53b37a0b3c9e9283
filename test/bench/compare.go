package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A revision is slower than another beyond noise if both are true: its median is more than
// slack above the other's, and its best turn is above the worst turn of the other. With
// five turns each, chance alone does that to one figure in 252.
const slack = 1.1

// slower tells whether a figure is, beyond noise. All figures are better when lower.
func slower(now, before []float64) bool {
	if len(now) == 0 || len(before) == 0 {
		return false
	}
	return spreadOf(now).median > slack*spreadOf(before).median && slices.Min(now) > slices.Max(before)
}

// build builds hdsd of a revision, in a worktree that is there meanwhile.
func build(dir, revision string) (binary string, err error) {
	tree := filepath.Join(dir, "base")
	binary = filepath.Join(dir, "hdsd-base")
	if err := command(".", "git", "worktree", "add", "--detach", tree, revision); err != nil {
		return "", err
	}
	defer func() {
		if removed := command(".", "git", "worktree", "remove", "--force", tree); err == nil {
			err = removed
		}
	}()
	return binary, command(tree, "go", "build", "-trimpath", "-tags=grpcnotrace", "-o", binary, "./cmd/hdsd")
}

func command(dir string, words ...string) error {
	c := exec.Command(words[0], words[1:]...)
	c.Dir = dir
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(words, " "), err, out)
	}
	return nil
}

// compared prints both revisions, and returns what is slower.
func (o *outcome) compared() (worse []string) {
	for i, f := range o.figures {
		verdict := "as before"
		switch now, before := o.values[ours][i], o.values[base][i]; {
		case slower(now, before):
			verdict = "SLOWER"
			worse = append(worse, o.name+": "+f.name)
		case slower(before, now):
			verdict = "better"
		}
		fmt.Printf("| %s: %s, %s | %s | %s | %s | %s |\n", o.name, f.name, f.unit, o.value(base, i), o.value(ours, i), o.ratio(ours, base, i), verdict)
	}
	return worse
}
