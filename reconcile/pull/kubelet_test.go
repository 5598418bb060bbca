package pull_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/manifest"
	"podd/reconcile/pull"
	"podd/runtime/runtimetest"
	"podd/runtime/runtimetest/recording"
)

// TestKubeletPulls: with the same imagePullSecrets podd asks for the same images
// with the same credentials, one after the other, where users called wrong are refused.
func TestKubeletPulls(t *testing.T) {
	on, pods := recording.Read(t, "../../testdata/render/kubelet-api.jsonl.gz")
	set := &manifest.Set{Objects: map[string]manifest.Objects{"": manifest.Decode([]byte(on.Objects), manifest.Options{}).Objects}, Complete: map[string]bool{"": true}}
	compared, used := 0, map[string]bool{}
	for _, k := range pods {
		if len(k.Pulls) == 0 {
			continue
		}
		compared++
		f := manifest.Decode(k.Manifest, manifest.Options{})
		if len(f.Pods) == 0 {
			t.Fatalf("%s: %v", k.Manifest, f.Problems)
		}
		bubble(t, pull.Options{}, func(b *bench) {
			got := b.asKubelet(f.Pods[0], manifest.SupplyOf(f.Pods[0], set, "salt", nil))
			image := f.Pods[0].Spec.Spec.Containers[0].Image
			if d, differs := pullDiffers[image]; differs {
				used[image] = true
				if diff := cmp.Diff(d.pulls, got); diff != "" || d.why == "" {
					t.Errorf("%s no longer differs as the table says (-want +got)\n%s", k.Manifest, diff)
				}
			} else if diff := cmp.Diff(k.Pulls, got); diff != "" {
				t.Errorf("%s (-kubelet +podd)\n%s", k.Manifest, diff)
			}
		})
	}
	if compared < 20 || len(used) != len(pullDiffers) {
		t.Errorf("%d pods are compared, and %v of those in the table", compared, used)
	}
}

// pullDiffers has, by image, what podd means to ask instead.
var pullDiffers = map[string]struct {
	why   string
	pulls []recording.Pull
}{
	"registry.example/teams/app:1": {
		"what is for registry.example/team is not sent for registry.example/teams, whose name but begins so",
		[]recording.Pull{{Image: "registry.example/teams/app:1", Auth: map[string]any{"username": "anna", "password": "one"}}},
	},
	"token.example/app:1": {
		"docker login stores an identity token where the registry gives one; the kubelet knows user and password alone",
		[]recording.Pull{{Image: "token.example/app:1", Auth: map[string]any{"identity_token": "four"}}},
	},
	"both.example/app:1": {
		"beside an identity token the user is a placeholder",
		[]recording.Pull{{Image: "both.example/app:1", Auth: map[string]any{"identity_token": "six"}}},
	},
	"docker.io/library/app": {
		"a runtime that is asked for a name without a tag takes :latest itself, and shows the image as the manifest does",
		[]recording.Pull{{Image: "docker.io/library/app", Auth: map[string]any{"username": "hans", "password": "ten"}}},
	},
}

// asKubelet pulls the image of a pod and tells what was asked.
func (b *bench) asKubelet(p *manifest.Pod, s *manifest.Supply) (all []recording.Pull) {
	b.t.Helper()
	c := &p.Spec.Spec.Containers[0]
	b.remote(c.Image, nil)
	b.Inject(runtimetest.Fault{
		Method: "PullImage", Err: errors.New("failed to authorize: 401 Unauthorized"),
		Match: func(q any) bool { return strings.HasPrefix(q.(*cri.PullImageRequest).GetAuth().GetUsername(), "wrong") },
	})
	var secrets []*v1.Secret
	for _, ref := range p.Spec.Spec.ImagePullSecrets {
		if one := s.Secret(ref.Name); one != nil {
			secrets = append(secrets, one)
		}
	}
	if _, err := b.Ensure(b.t.Context(), c.Image, string(c.ImagePullPolicy), secrets, func() {}); err != nil {
		b.t.Error(err)
	}
	for _, c := range b.Calls("PullImage") {
		q := c.Request.(*cri.PullImageRequest)
		one := recording.Pull{Image: q.Image.Image}
		text, err := json.Marshal(q.Auth)
		if err == nil {
			err = json.Unmarshal(text, &one.Auth)
		}
		if err != nil {
			b.t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}
