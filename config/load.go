package config

import (
	"path/filepath"
	"strings"

	"hdsd/config/yamlpb"
	configv1 "hdsd/gen/hdsd/config/v1"
)

// Config is a whole configuration.
type Config = configv1.Config

// Problem is something wrong with a configuration, and how to put it right.
type Problem = yamlpb.Problem

// maxBytes is the largest configuration file taken.
const maxBytes = 16 << 20

// Load reads and checks a configuration file. Where a problem is more than a
// warning there is no Config.
func Load(path string) (*Config, []Problem) {
	data, err := yamlpb.ReadFile(path, maxBytes)
	if err != nil {
		return nil, []Problem{{File: path, Message: err.Error()}}
	}
	folder, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, []Problem{{File: path, Message: "has no absolute path: " + err.Error()}}
	}
	return parse(path, data, folder)
}

func parse(path string, data []byte, folder string) (*Config, []Problem) {
	root, problems := yamlpb.Parse(path, data)
	if len(problems) > 0 {
		return nil, problems
	}
	cfg := &Config{}
	c := &checks{root: root, problems: root.Decode(cfg)}
	for _, problem := range c.problems {
		c.spoiled = append(c.spoiled, problem.Field)
	}
	resolvePaths(cfg, folder)
	c.config(cfg)
	yamlpb.SortProblems(c.problems)
	for _, problem := range c.problems {
		if !problem.Warning {
			return nil, c.problems
		}
	}
	if err := fillDefaults(cfg, folder); err != nil {
		return nil, append(c.problems, root.Problem("node_id", "is needed, since this machine's name cannot be read: %s", err))
	}
	return cfg, c.problems
}

// checks collects what is wrong with a decoded configuration.
type checks struct {
	root     yamlpb.Node
	problems []Problem
	spoiled  []string // fields that could not be decoded, about which nothing more is said
}

func (c *checks) add(field, format string, args ...any) {
	for _, spoiled := range c.spoiled {
		if within(field, spoiled) || within(spoiled, field) {
			return
		}
	}
	c.problems = append(c.problems, c.root.Problem(field, format, args...))
}

func (c *checks) warn(field, format string, args ...any) {
	before := len(c.problems)
	c.add(field, format, args...)
	if len(c.problems) > before {
		c.problems[before].Warning = true
	}
}

// within tells whether a field is another or inside it.
func within(field, outer string) bool {
	rest, ok := strings.CutPrefix(field, outer)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
