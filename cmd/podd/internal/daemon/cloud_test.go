package daemon

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/metadata"
)

var inCloud = metadata.Machine{Name: "worker-1", ProviderID: "openstack:///u1", Zone: "nova", Type: "m1.small"}

// TestCloudMetadata checks that the request is repeated until the cloud responds, or only
// a few times if a response is cached.
func TestCloudMetadata(t *testing.T) {
	path := filepath.Join(t.TempDir(), "root", "cloud.json")
	for _, tt := range []struct {
		name, machine string
		answers       int // the attempt that succeeds; 0: none within a minute
		tries         int
		learns        bool
	}{
		{"late", "m1", 4, 4, true},
		{"from memory", "m1", 0, cloudTries, true},
		{"another machine's disk", "m2", 0, 0, false},
		{"nobody knows which machine", "", 0, 0, false},
		{"at once", "m2", 1, 1, true},
		{"from memory of the newest", "m1", 0, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				k := &cloudMetadata{path: path, machine: tt.machine, cloud: "openstack", log: slog.New(slog.DiscardHandler)}
				k.fetch = func(context.Context) (metadata.Machine, error) {
					if tries++; tries == tt.answers {
						return inCloud, nil
					}
					return metadata.Machine{}, errors.New("nobody answers")
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				m, err := k.get(ctx)
				if (err == nil) != tt.learns || tt.learns && (m != inCloud || tries != tt.tries) {
					t.Errorf("after %d tries: %+v, %v", tries, m, err)
				}
			})
		})
	}
}

// TestCloudMetadata_Unchanged checks that an equal cache is not written again.
func TestCloudMetadata_Unchanged(t *testing.T) {
	k := &cloudMetadata{path: filepath.Join(t.TempDir(), "cloud.json"), machine: "m1", cloud: "openstack", log: slog.New(slog.DiscardHandler)}
	other := inCloud
	other.Zone = "other"
	var before os.FileInfo
	for i, m := range []metadata.Machine{inCloud, inCloud, other} {
		k.store(m)
		now, err := os.Stat(k.path)
		if err != nil {
			t.Fatal(err)
		}
		if is, ok := k.load(); !ok || is != m || before != nil && os.SameFile(before, now) != (i == 1) {
			t.Errorf("%d: the file has %+v, the same file: %t", i, is, os.SameFile(before, now))
		}
		before = now
	}
}

// TestApplyMachine checks that settings of the user take precedence.
func TestApplyMachine(t *testing.T) {
	cfg := &config.Config{Node: config.Node{Cloud: "openstack", NodeName: "host"}}
	if err := applyMachine(cfg, inCloud); err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"topology.kubernetes.io/zone": "nova", "node.kubernetes.io/instance-type": "m1.small"}
	if diff := cmp.Diff(labels, cfg.NodeLabels); diff != "" || cfg.NodeName != "worker-1" || cfg.Cluster.ProviderID != "openstack:///u1" {
		t.Errorf("%+v %s", cfg, diff)
	}
	cfg = &config.Config{Node: config.Node{Cloud: "openstack", NodeName: "mine", Named: true, NodeLabels: map[string]string{"topology.kubernetes.io/zone": "z"}}}
	cfg.Cluster.ProviderID = "x://y"
	if err := applyMachine(cfg, inCloud); err != nil {
		t.Fatal(err)
	}
	labels["topology.kubernetes.io/zone"] = "z"
	if diff := cmp.Diff(labels, cfg.NodeLabels); diff != "" || cfg.NodeName != "mine" || cfg.Cluster.ProviderID != "x://y" {
		t.Errorf("%+v %s", cfg, diff)
	}
}
