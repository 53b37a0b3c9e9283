package file

import (
	"path/filepath"
	"testing"

	"github.com/fsnotify/fsnotify"
)

func TestWhichEventsMatter(t *testing.T) {
	folder := t.TempDir()
	in := func(name string) string { return filepath.Join(folder, name) }
	file := Options{Path: in("a.yaml")}
	all := Options{Path: folder}
	elsewhere := Options{Path: "/other/a.yaml", WatchedDirectory: folder}
	tests := map[string]struct {
		options Options
		event   fsnotify.Event
		want    bool
	}{
		"file moved":               {file, fsnotify.Event{Name: in("a.yaml"), Op: fsnotify.Create}, true},
		"file written":             {file, fsnotify.Event{Name: in("a.yaml"), Op: fsnotify.Write}, false},
		"file removed":             {file, fsnotify.Event{Name: in("a.yaml"), Op: fsnotify.Remove}, false},
		"another moved":            {file, fsnotify.Event{Name: in("b.yaml"), Op: fsnotify.Create}, false},
		"link beside it":           {file, fsnotify.Event{Name: in("..data"), Op: fsnotify.Create}, false},
		"folder: moved in":         {all, fsnotify.Event{Name: in("a.yaml"), Op: fsnotify.Create}, true},
		"folder: removed":          {all, fsnotify.Event{Name: in("a.pb"), Op: fsnotify.Remove}, true},
		"folder: moved away":       {all, fsnotify.Event{Name: in("a.json"), Op: fsnotify.Rename}, true},
		"folder: written":          {all, fsnotify.Event{Name: in("a.yml"), Op: fsnotify.Write}, false},
		"folder: not read":         {all, fsnotify.Event{Name: in("a.txt"), Op: fsnotify.Create}, false},
		"folder: hidden":           {all, fsnotify.Event{Name: in(".a.yaml"), Op: fsnotify.Create}, false},
		"folder: volume":           {all, fsnotify.Event{Name: in("..data"), Op: fsnotify.Create}, true},
		"folder: volume's old":     {all, fsnotify.Event{Name: in("..data"), Op: fsnotify.Remove}, false},
		"watched: anything moved":  {elsewhere, fsnotify.Event{Name: in("x"), Op: fsnotify.Create}, true},
		"watched: anything gone":   {elsewhere, fsnotify.Event{Name: in("x"), Op: fsnotify.Remove}, false},
		"watched: written":         {elsewhere, fsnotify.Event{Name: in("x"), Op: fsnotify.Write}, false},
		"watched: rights changed":  {elsewhere, fsnotify.Event{Name: in("x"), Op: fsnotify.Chmod}, false},
		"file: its rights changed": {file, fsnotify.Event{Name: in("a.yaml"), Op: fsnotify.Chmod}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir, wants := New(test.options).watched()
			if dir != folder || wants(test.event) != test.want {
				t.Errorf("watching %s, matters: %v", dir, !test.want)
			}
		})
	}
}
