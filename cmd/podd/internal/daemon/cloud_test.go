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

var inCloud = metadata.Instance{Name: "worker-1", ProviderID: "openstack:///u1", Zone: "nova", Type: "m1.small"}

// TestCloudMetadata checks that requests are repeated until the cloud responds. If metadata
// is cached, there are only maxCloudAttempts requests.
func TestCloudMetadata(t *testing.T) {
	path := filepath.Join(t.TempDir(), "root", "cloud.json")
	for _, tt := range []struct {
		name, machine string
		succeeds      int // the attempt that succeeds; 0: none within a minute
		attempts      int
		ok            bool
	}{
		{"fourth attempt", "m1", 4, 4, true},
		{"cached", "m1", 0, maxCloudAttempts, true},
		{"cache of another machine", "m2", 0, 0, false},
		{"unknown machine", "", 0, 0, false},
		{"first attempt", "m2", 1, 1, true},
		{"cache replaced by another machine", "m1", 0, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				attempts := 0
				k := &cloudMetadataClient{path: path, hostID: tt.machine, cloud: "openstack", log: slog.New(slog.DiscardHandler)}
				k.fetch = func(context.Context) (metadata.Instance, error) {
					if attempts++; attempts == tt.succeeds {
						return inCloud, nil
					}
					return metadata.Instance{}, errors.New("no response")
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				m, err := k.get(ctx)
				if (err == nil) != tt.ok || tt.ok && (m != inCloud || attempts != tt.attempts) {
					t.Errorf("got %+v, %v after %d attempts, want %d", m, err, attempts, tt.attempts)
				}
			})
		})
	}
}

// TestCloudMetadata_Unchanged checks that an equal cache is not written again.
func TestCloudMetadata_Unchanged(t *testing.T) {
	k := &cloudMetadataClient{path: filepath.Join(t.TempDir(), "cloud.json"), hostID: "m1", cloud: "openstack", log: slog.New(slog.DiscardHandler)}
	other := inCloud
	other.Zone = "other"
	var before os.FileInfo
	for i, m := range []metadata.Instance{inCloud, inCloud, other} {
		k.store(m)
		now, err := os.Stat(k.path)
		if err != nil {
			t.Fatal(err)
		}
		if is, ok := k.load(); !ok || is != m || before != nil && os.SameFile(before, now) != (i == 1) {
			t.Errorf("store %d: got %+v, want %+v; got the same file: %t", i, is, m, os.SameFile(before, now))
		}
		before = now
	}
}

// TestApplyMetadata checks that settings of the user take precedence.
func TestApplyMetadata(t *testing.T) {
	cfg := &config.Config{Node: config.Node{Cloud: "openstack", NodeName: "host"}}
	if err := applyMetadata(cfg, inCloud); err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"topology.kubernetes.io/zone": "nova", "node.kubernetes.io/instance-type": "m1.small"}
	if diff := cmp.Diff(labels, cfg.NodeLabels); diff != "" || cfg.NodeName != "worker-1" || cfg.Cluster.ProviderID != "openstack:///u1" {
		t.Errorf("without user settings: got %+v; labels (-want +got):\n%s", cfg, diff)
	}
	cfg = &config.Config{Node: config.Node{Cloud: "openstack", NodeName: "mine", NodeNameSetByUser: true, NodeLabels: map[string]string{"topology.kubernetes.io/zone": "z"}}}
	cfg.Cluster.ProviderID = "x://y"
	if err := applyMetadata(cfg, inCloud); err != nil {
		t.Fatal(err)
	}
	labels["topology.kubernetes.io/zone"] = "z"
	if diff := cmp.Diff(labels, cfg.NodeLabels); diff != "" || cfg.NodeName != "mine" || cfg.Cluster.ProviderID != "x://y" {
		t.Errorf("with user settings: got %+v; labels (-want +got):\n%s", cfg, diff)
	}
}
