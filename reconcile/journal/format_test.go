package journal

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/state"
)

// formatUID is the UID of the pod in testdata/formats.
const formatUID types.UID = "8f7b2c1e-0000-4000-8000-0123456789ab"

// dropped contains the fields of earlier formats that podd no longer reads.
var dropped = map[string]bool{".stopping.Restart": true}

// journalFormats returns one journal for each format that podd has ever used, as it was written by
// that version of podd. All fields of the journals are set.
func journalFormats(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/formats/*.json")
	if err != nil || len(files) < 12 {
		t.Fatalf("got %d journals, %v; want at least 12", len(files), err)
	}
	all := map[string][]byte{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(file)] = data
	}
	return all
}

// TestFormats checks that every field of a journal of every format is read.
func TestFormats(t *testing.T) {
	for name, data := range journalFormats(t) {
		j, err := decode(formatUID, data)
		if err != nil {
			t.Errorf("decoding %s: got error %v, want none", name, err)
			continue
		}
		again, err := encode(j)
		if err != nil {
			t.Errorf("encoding %s: got error %v, want none", name, err)
			continue
		}
		var was, is any
		if err := json.Unmarshal(data, &was); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(again, &is); err != nil {
			t.Fatal(err)
		}
		wantWithin(t, name, was, is)
	}
}

// TestFormats_Newest checks that the newest file of testdata/formats has every field that podd
// stores. If a field is added, a new file is needed, so that later versions of podd are tested
// with it.
func TestFormats_Newest(t *testing.T) {
	all := journalFormats(t)
	name := slices.Max(slices.Collect(maps.Keys(all)))
	var stored any
	if err := json.Unmarshal(all[name], &stored); err != nil {
		t.Fatal(err)
	}
	wantFields(t, name, reflect.TypeFor[state.Record](), stored)
}

// wantFields checks that a JSON value has all fields of a type. A Kubernetes type, or a type with
// its own encoding, is treated as one field.
func wantFields(t *testing.T, at string, typ reflect.Type, stored any) {
	t.Helper()
	switch typ.Kind() {
	case reflect.Pointer:
		wantFields(t, at, typ.Elem(), stored)
	case reflect.Struct:
		if typ.Implements(reflect.TypeFor[json.Marshaler]()) || strings.HasPrefix(typ.PkgPath(), "k8s.io/api/") {
			return
		}
		object, _ := stored.(map[string]any)
		for i := range typ.NumField() {
			field := typ.Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name = cmp.Or(name, field.Name); name == "-" {
				continue
			}
			value, ok := object[name]
			if !ok {
				t.Errorf("%s: got no field %s, want one: write a journal with it to a new file of testdata/formats", at, name)
				continue
			}
			wantFields(t, at+"."+name, field.Type, value)
		}
	case reflect.Map:
		object, _ := stored.(map[string]any)
		if len(object) == 0 {
			t.Errorf("%s: got an empty object, want fields", at)
		}
		for key, value := range object {
			wantFields(t, at+"."+key, typ.Elem(), value)
		}
	case reflect.Slice:
		list, _ := stored.([]any)
		if len(list) == 0 {
			t.Errorf("%s: got an empty list, want elements", at)
		}
		for _, value := range list {
			wantFields(t, at+"[]", typ.Elem(), value)
		}
	}
}

// wantWithin checks that the JSON value decoded contains all fields and elements of the JSON value
// stored.
func wantWithin(t *testing.T, at string, stored, decoded any) {
	t.Helper()
	object, ok := stored.(map[string]any)
	if !ok {
		if !reflect.DeepEqual(stored, decoded) {
			t.Errorf("%s: got %v, want %v", at, decoded, stored)
		}
		return
	}
	found, _ := decoded.(map[string]any)
	for field, value := range object {
		path := at + "." + field
		if _, name, _ := bytes.Cut([]byte(path), []byte(".json")); !dropped[string(name)] {
			wantWithin(t, path, value, found[field])
		}
	}
}

// readDirectory writes data as the journal of a pod directory and reads the directory as a starting
// podd does. The result kept reports whether the directory is an orphan that only a user may
// remove. Otherwise j is the journal.
func readDirectory(t *testing.T, root string, data []byte) (kept bool, j state.Record) {
	t.Helper()
	dir := filepath.Join(root, string(formatUID))
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, FileName), data, 0o600); err != nil {
		t.Fatal(err)
	}
	found, orphans, err := Store{Root: root}.ReadAll()
	if err != nil || len(found)+len(orphans) != 1 {
		t.Fatalf("%q: got %d pods and %d orphans (error %v); want one pod or one orphan", data, len(found), len(orphans), err)
	}
	for _, all := range found {
		return false, all[0]
	}
	if o := orphans[0]; !o.MustKeep() || o.Reason() == "" {
		t.Fatalf("%q: got an orphan that podd may remove, want one that is kept with a reason", data)
	}
	return true, state.Record{}
}

// TestTruncated truncates a journal of each format after each byte, and checks that it cannot be
// decoded. For three of these lengths it also checks that the pod directory is kept.
// TestEmptyJournal of package reconcile tests an empty journal.
func TestTruncated(t *testing.T) {
	for name, data := range journalFormats(t) {
		root := t.TempDir()
		for n := 1; n < len(data); n++ {
			if j, err := decode(formatUID, data[:n]); err == nil {
				t.Fatalf("%s: first %d bytes: got the journal of %s, want an error", name, n, j.Key)
			}
		}
		for _, n := range []int{1, len(data) / 2, len(data) - 1} {
			if kept, _ := readDirectory(t, root, data[:n]); !kept {
				t.Errorf("%s: directory with the first %d bytes: got one that podd may remove, want one that is kept", name, n)
			}
		}
	}
}

// TestFlipped flips bits of a journal, and checks that podd either reads the unchanged values or
// keeps the directory. Journals of older versions of podd have no checksum, so podd may read
// another value, but never another UID.
func TestFlipped(t *testing.T) {
	for name, data := range journalFormats(t) {
		flip(data, 1, func(flipped []byte) {
			if j, err := decode(formatUID, flipped); err == nil && j.UID != formatUID {
				t.Errorf("%s: got UID %q, want %q or an error", name, j.UID, formatUID)
			}
		})
	}
	newest, err := decode(formatUID, journalFormats(t)["11-version.json"])
	if err != nil {
		t.Fatal(err)
	}
	data, err := encode(newest)
	if err != nil {
		t.Fatal(err)
	}
	if kept, _ := readDirectory(t, t.TempDir(), data); kept {
		t.Fatal("undamaged journal: got an orphan, want a journal")
	}
	flip(data, 8, func(flipped []byte) {
		if j, err := decode(formatUID, flipped); err == nil && !reflect.DeepEqual(j, newest) {
			t.Errorf("%q: got another journal than the undamaged one, want an error", flipped)
		}
	})
}

// flip calls try with data in which one of the lowest bits of a byte differs.
func flip(data []byte, bits int, try func([]byte)) {
	for i := range data {
		for bit := range bits {
			data[i] ^= 1 << bit
			try(data)
			data[i] ^= 1 << bit
		}
	}
}

// TestNewer checks that a journal of a newer podd is kept, even if its fields have other types.
func TestNewer(t *testing.T) {
	for _, text := range []string{`{"version":2}`, `{"version":2,"key":7,"uid":[],"containers":"none"}`} {
		if kept, _ := readDirectory(t, t.TempDir(), []byte(text)); !kept {
			t.Errorf("%s: got a valid journal, want an orphan", text)
		}
	}
}

// FuzzDecode checks that no content is read as the journal of another UID.
func FuzzDecode(f *testing.F) {
	for _, data := range journalFormats(f) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if j, err := decode(formatUID, data); err == nil && (j.UID != formatUID || j.Key.Name == "") {
			t.Errorf("got the journal of %s with UID %s; want an error or UID %s", j.Key, j.UID, formatUID)
		}
	})
}
