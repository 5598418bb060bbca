package daemon

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podd/cmd/podd/internal/daemon/view"
	"podd/manifest"
	"podd/reconcile"
	"podd/server"
)

// TestOpenDeviceManager checks that openDeviceManager logs and returns a problem if the file of device
// allocations cannot be read. A missing file is not a problem.
func TestOpenDeviceManager(t *testing.T) {
	for name, tt := range map[string]struct {
		content string // of the file; "" if the file does not exist
		want    string // part of the problem; "" if there is no problem
	}{
		"missing":                 {"", ""},
		"no allocations":          {"[]", ""},
		"damaged":                 {`{"version":1,"records":[],"checksum":"00000000"}`, "the checksum is wrong"},
		"written by a newer podd": {`{"version":2}`, "version 2 of a newer podd"},
	} {
		root, log := t.TempDir(), &bytes.Buffer{}
		file := filepath.Join(root, "devices.json")
		if tt.content != "" {
			if err := os.WriteFile(file, []byte(tt.content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		devices, problems := openDeviceManager(root, slog.New(slog.NewTextHandler(log, nil)))
		if devices == nil {
			t.Fatalf("%s: got nil, want a Manager", name)
		}
		if !strings.Contains(log.String(), tt.want) || tt.want == "" && log.Len() > 0 {
			t.Errorf("%s: got log %q, want one that contains %q (\"\": no log)", name, log, tt.want)
		}
		v := view.NewPublisher(view.Options{Base: server.View{}, InitialProblems: problems})
		v.Publish(reconcile.Change{})
		var got []string
		for _, p := range v.Latest.View().Problems {
			got = append(got, p.Severity+" "+p.Message)
		}
		switch {
		case tt.want == "" && len(got) == 0:
		case tt.want != "" && len(got) == 1 && strings.HasPrefix(got[0], string(manifest.Warning)) &&
			strings.Contains(got[0], tt.want) && strings.Contains(got[0], file) && strings.Contains(got[0], "devices.json.unreadable"):
		default:
			t.Errorf("%s: got problems %q, want one warning that contains %q (\"\": want no problem), the path %s and devices.json.unreadable", name, got, tt.want, file)
		}
	}
}
