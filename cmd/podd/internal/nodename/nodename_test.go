package nodename_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"podd/cmd/podd/internal/nodename"
)

func TestResolve(t *testing.T) {
	for name, c := range map[string]struct {
		record  nodename.Record
		found   string
		given   bool
		want    nodename.Record
		differs bool
	}{
		"first start":               {nodename.Record{}, "a", false, nodename.Record{Name: "a"}, false},
		"same name":                 {nodename.Record{Name: "a"}, "a", false, nodename.Record{Name: "a"}, false},
		"changed hostname":          {nodename.Record{Name: "a"}, "b", false, nodename.Record{Name: "a"}, true},
		"given name":                {nodename.Record{Name: "a"}, "b", true, nodename.Record{Name: "b", EarlierNames: []string{"a"}}, false},
		"same name after a rename":  {nodename.Record{Name: "b", EarlierNames: []string{"a"}}, "b", false, nodename.Record{Name: "b", EarlierNames: []string{"a"}}, false},
		"another given name":        {nodename.Record{Name: "b", EarlierNames: []string{"a"}}, "c", true, nodename.Record{Name: "c", EarlierNames: []string{"a", "b"}}, false},
		"back to the previous name": {nodename.Record{Name: "b", EarlierNames: []string{"a"}}, "a", true, nodename.Record{Name: "a", EarlierNames: []string{"b"}}, false},
	} {
		got, differs := c.record.Resolve(c.found, c.given)
		if !reflect.DeepEqual(got, c.want) || differs != c.differs {
			t.Errorf("%s: got %+v, differs %t; want %+v, %t", name, got, differs, c.want, c.differs)
		}
	}
}

func TestReadWrite(t *testing.T) {
	root := t.TempDir()
	if r, err := nodename.Read(root); !reflect.DeepEqual(r, nodename.Record{}) || err != nil {
		t.Errorf("without a file: got %+v, %v; want no record", r, err)
	}
	want := nodename.Record{Name: "b.example", EarlierNames: []string{"a"}}
	if err := nodename.Write(root, want); err != nil {
		t.Fatal(err)
	}
	if r, err := nodename.Read(root); !reflect.DeepEqual(r, want) || err != nil {
		t.Errorf("got %+v, %v; want %+v", r, err, want)
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
			t.Errorf("%s: got %+v, %v; want no record and an error with the path", name, r, err)
		}
	}
}
