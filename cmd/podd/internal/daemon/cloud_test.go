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

// inCloud is the metadata of this host in the cloud.
var inCloud = metadata.Instance{Name: "worker-1", ProviderID: "openstack:///u1", Zone: "nova", Type: "m1.small"}

// TestCloudMetadata checks that requests are repeated until the cloud responds. If metadata of this
// host is cached, it must be used after maxCloudAttempts failures. All cases share one cache.
func TestCloudMetadata(t *testing.T) {
	path := filepath.Join(t.TempDir(), "root", "cloud.json")
	for _, tt := range []struct {
		name, hostID string
		succeeds     int  // the number of the request that succeeds; 0: none within a minute
		attempts     int  // expected number of requests; not checked unless ok is set
		ok           bool // whether get returns metadata
	}{
		{"fourth request succeeds", "m1", 4, 4, true},
		{"cache of this host", "m1", 0, maxCloudAttempts, true},
		{"cache of another host", "m2", 0, 0, false},
		{"unknown host", "", 0, 0, false},
		{"first request succeeds on another host", "m2", 1, 1, true},
		{"cache replaced by another host", "m1", 0, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				attempts := 0
				k := &cloudMetadataClient{path: path, hostID: tt.hostID, cloud: "openstack", log: slog.New(slog.DiscardHandler)}
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
					t.Errorf("got metadata %+v, error %v, %d requests; want metadata: %t, %d requests (not checked if no metadata is wanted)", m, err, attempts, tt.ok, tt.attempts)
				}
			})
		})
	}
}

// TestCloudMetadata_Unchanged checks that store does not replace the cache if the metadata has not
// changed.
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
		if cached, ok := k.load(); !ok || cached != m {
			t.Errorf("store %d: got cached metadata %+v, want %+v", i, cached, m)
		}
		if before != nil && os.SameFile(before, now) != (i == 1) {
			t.Errorf("store %d: cache is the same file: got %t, want %t", i, os.SameFile(before, now), i == 1)
		}
		before = now
	}
}

// TestApplyMetadata checks that settings of the user take precedence over metadata.
func TestApplyMetadata(t *testing.T) {
	cfg := &config.Config{Node: config.Node{Cloud: "openstack", NodeName: "host"}}
	if err := applyMetadata(cfg, inCloud); err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"topology.kubernetes.io/zone": "nova", "node.kubernetes.io/instance-type": "m1.small"}
	if diff := cmp.Diff(labels, cfg.NodeLabels); diff != "" || cfg.NodeName != "worker-1" || cfg.Cluster.ProviderID != "openstack:///u1" {
		t.Errorf("without user settings: got node name %q, provider ID %q; want node name worker-1, provider ID openstack:///u1; labels (-want +got):\n%s", cfg.NodeName, cfg.Cluster.ProviderID, diff)
	}
	cfg = &config.Config{Node: config.Node{Cloud: "openstack", NodeName: "mine", NodeNameSetByUser: true, NodeLabels: map[string]string{"topology.kubernetes.io/zone": "z"}}}
	cfg.Cluster.ProviderID = "x://y"
	if err := applyMetadata(cfg, inCloud); err != nil {
		t.Fatal(err)
	}
	labels["topology.kubernetes.io/zone"] = "z"
	if diff := cmp.Diff(labels, cfg.NodeLabels); diff != "" || cfg.NodeName != "mine" || cfg.Cluster.ProviderID != "x://y" {
		t.Errorf("with user settings: got node name %q, provider ID %q; want node name mine, provider ID x://y; labels (-want +got):\n%s", cfg.NodeName, cfg.Cluster.ProviderID, diff)
	}
}
