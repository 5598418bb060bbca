package checksum_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"podd/reconcile/checksum"
)

// TestMarshal checks that Marshal writes the checksum as a field of the JSON object. Verify must
// detect every truncated or changed file.
func TestMarshal(t *testing.T) {
	data, err := checksum.Marshal(struct{ Name string }{"web"})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(data), `{"Name":"web","checksum":"240e286f"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	var fields map[string]string
	if err := json.Unmarshal(data, &fields); err != nil || fields["Name"] != "web" {
		t.Errorf("decoded JSON: got %v (error %v), want Name web", fields, err)
	}
	if err := checksum.Verify(data); err != nil {
		t.Error(err)
	}
	for n := range data {
		if checksum.Verify(data[:n]) == nil {
			t.Errorf("Verify of the first %d bytes: got no error, want one", n)
		}
		for bit := range 8 {
			data[n] ^= 1 << bit
			if checksum.Verify(data) == nil {
				t.Errorf("Verify(%q): got no error, want one", data)
			}
			data[n] ^= 1 << bit
		}
	}
}

// TestVerify checks that the error for a file without a checksum differs from the error for a wrong
// checksum.
func TestVerify(t *testing.T) {
	for text, want := range map[string]struct{ missing, wrong bool }{
		``:                                     {missing: true},
		`{"Name":"web"}`:                       {missing: true},
		`{"Name":"web","checksum":7}`:          {missing: true},
		`{"Name":"web","checksum":"none"}`:     {missing: true},
		`{"Name":"web","checksum":"00000000"}`: {wrong: true},
		`,"checksum":"00000000"}`:              {}, // the checksum of no bytes
	} {
		err := checksum.Verify([]byte(text))
		if missing := errors.Is(err, checksum.ErrMissing); missing != want.missing || (err != nil && !missing) != want.wrong {
			t.Errorf("%s: got error %v, want %+v", text, err, want)
		}
	}
}

// TestMarshal_Failed checks that Marshal returns the error of the JSON encoder.
func TestMarshal_Failed(t *testing.T) {
	if data, err := checksum.Marshal(func() {}); err == nil {
		t.Errorf("Marshal of a function: got %q, want an error", data)
	}
}

func TestCheckVersion(t *testing.T) {
	for data, want := range map[string]string{
		`{"version":2,"name":["web"]}`: "",
		`{"name":"web"}`:               "",
		`{"version":3}`:                "the file has format version 3 of a newer podd, but this podd reads only versions up to 2",
		`{"version":"3"}`:              "invalid JSON: ",
		`{"version":2`:                 "invalid JSON: ",
	} {
		err := checksum.CheckVersion([]byte(data), 2)
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%s: got error %v, want %q", data, err, want)
		}
	}
}
