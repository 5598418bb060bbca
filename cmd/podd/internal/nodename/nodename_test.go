package nodename_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"podd/cmd/podd/internal/nodename"
)

// TestResolve checks the name in effect after a start of podd. A hostname that differs from the stored
// name must be ignored, but a name that the user has set must take effect.
func TestResolve(t *testing.T) {
	for name, c := range map[string]struct {
		stored    nodename.Record
		name      string // the hostname, or the name that the user has set
		setByUser bool
		want      nodename.Record
		isIgnored bool
	}{
		"first start":                  {nodename.Record{}, "a", false, nodename.Record{Name: "a"}, false},
		"same name":                    {nodename.Record{Name: "a"}, "a", false, nodename.Record{Name: "a"}, false},
		"changed hostname":             {nodename.Record{Name: "a"}, "b", false, nodename.Record{Name: "a"}, true},
		"name set by the user":         {nodename.Record{Name: "a"}, "b", true, nodename.Record{Name: "b", EarlierNames: []string{"a"}}, false},
		"same name after a rename":     {nodename.Record{Name: "b", EarlierNames: []string{"a"}}, "b", false, nodename.Record{Name: "b", EarlierNames: []string{"a"}}, false},
		"another name set by the user": {nodename.Record{Name: "b", EarlierNames: []string{"a"}}, "c", true, nodename.Record{Name: "c", EarlierNames: []string{"a", "b"}}, false},
		"back to the previous name":    {nodename.Record{Name: "b", EarlierNames: []string{"a"}}, "a", true, nodename.Record{Name: "a", EarlierNames: []string{"b"}}, false},
	} {
		got, isIgnored := c.stored.Resolve(c.name, c.setByUser)
		if !reflect.DeepEqual(got, c.want) || isIgnored != c.isIgnored {
			t.Errorf("%s: got record %+v, name ignored %t; want record %+v, name ignored %t", name, got, isIgnored, c.want, c.isIgnored)
		}
	}
}

// TestReadWrite checks that Read returns the record that Write has stored, and the zero Record before.
func TestReadWrite(t *testing.T) {
	root := t.TempDir()
	if r, err := nodename.Read(root); !reflect.DeepEqual(r, nodename.Record{}) || err != nil {
		t.Errorf("without a file: got record %+v, error %v; want the zero Record and no error", r, err)
	}
	want := nodename.Record{Name: "b.example", EarlierNames: []string{"a"}}
	if err := nodename.Write(root, want); err != nil {
		t.Fatal(err)
	}
	if r, err := nodename.Read(root); !reflect.DeepEqual(r, want) || err != nil {
		t.Errorf("after Write: got record %+v, error %v; want %+v", r, err, want)
	}
}

// TestRead_Broken checks that Read returns an error for a broken file. If it returned the zero
// Record, all pods would get new names.
func TestRead_Broken(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"empty":                func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"truncated":            func(path string) error { return os.WriteFile(path, []byte(`{"name": "a`), 0o600) },
		"invalid name":         func(path string) error { return os.WriteFile(path, []byte(`{"name": "../a"}`), 0o600) },
		"no name":              func(path string) error { return os.WriteFile(path, []byte(`{}`), 0o600) },
		"invalid earlier name": func(path string) error { return os.WriteFile(path, []byte(`{"name":"a","earlier":["/"]}`), 0o600) },
		"directory":            func(path string) error { return os.Mkdir(path, 0o700) },
		"symlink":              func(path string) error { return os.Symlink("/etc/hostname", path) },
	} {
		root := t.TempDir()
		path := filepath.Join(root, "node-name")
		if err := damage(path); err != nil {
			t.Fatal(err)
		}
		if r, err := nodename.Read(root); err == nil || !strings.Contains(err.Error(), path) || !reflect.DeepEqual(r, nodename.Record{}) {
			t.Errorf("%s: got record %+v, error %v; want the zero Record and an error that contains the path %s", name, r, err, path)
		}
	}
}
