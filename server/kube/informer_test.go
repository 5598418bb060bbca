package kube

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	authentication "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/features"
	featurestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"podd/server/auth"
)

// TestInformer: client-go lists and watches, or has all there is told by the
// watch, with all that it asks for; what it keeps is what is there.
func TestInformer(t *testing.T) {
	for name, streams := range map[string]bool{"list": false, "watch alone": true} {
		t.Run(name, func(t *testing.T) {
			featurestesting.SetFeatureDuringTest(t, features.WatchListClient, streams)
			informs(t, streams)
		})
	}
}

func informs(t *testing.T, streams bool) {
	n := newNode()
	var lists atomic.Int32
	h := n.api().Handler()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !r.URL.Query().Has("watch") {
			lists.Add(1)
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: s.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods()
	var gone atomic.Int32
	pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(any) { gone.Add(1) }})
	factory.Start(t.Context().Done())
	t.Cleanup(factory.Shutdown)
	if !cache.WaitForCacheSync(t.Context().Done(), pods.Informer().HasSynced) {
		t.Fatal("it never knew all")
	}
	await := func(what string, is func() bool) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("never: %s", what)
			}
		}
	}
	if listed := lists.Load() > 0; listed == streams {
		t.Errorf("it listed: %t", listed)
	}
	if all, err := pods.Lister().List(labels.Everything()); err != nil || len(all) != 2 {
		t.Fatalf("got %v %v", all, err)
	}
	n.put(pod("default", "new-n1", "3"))
	await("a pod comes", func() bool { p, err := pods.Lister().Pods("default").Get("new-n1"); return err == nil && p.UID == "u3" })
	ended := pod("default", "new-n1", "3")
	ended.Status.Phase = v1.PodSucceeded
	n.put(ended)
	await("it is another", func() bool {
		p, err := pods.Lister().Pods("default").Get("new-n1")
		return err == nil && p.Status.Phase == v1.PodSucceeded
	})
	n.drop("new-n1")
	await("it goes", func() bool { return gone.Load() == 1 })
	s.CloseClientConnections() // what was watched is watched on
	n.put(pod("default", "new-n1", "4"))
	await("one comes after the cut", func() bool { p, err := pods.Lister().Pods("default").Get("new-n1"); return err == nil && p.UID == "u4" })
}

// TestClient: discovery and errors are what client-go makes of them.
func TestClient(t *testing.T) {
	n := newNode()
	s := httptest.NewServer(auth.As(auth.User{Name: "bob"}, n.api().Handler()))
	t.Cleanup(s.Close)
	config := &rest.Config{Host: s.URL, QPS: -1}
	for _, legacy := range []bool{false, true} {
		d, err := discovery.NewDiscoveryClientForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		d.UseLegacyDiscovery = legacy
		_, lists, err := d.ServerGroupsAndResources()
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for _, list := range lists {
			for _, r := range list.APIResources {
				found[list.GroupVersion+" "+r.Name] = true
			}
		}
		for _, want := range []string{"v1 pods", "v1 pods/exec", "v1 nodes", "authorization.k8s.io/v1 selfsubjectaccessreviews"} {
			if !found[want] {
				t.Errorf("legacy %t: no %s in %v", legacy, want, found)
			}
		}
	}
	protobuf := rest.CopyConfig(config)
	protobuf.AcceptContentTypes, protobuf.ContentType = "application/vnd.kubernetes.protobuf,application/json", "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(protobuf)
	if err != nil {
		t.Fatal(err)
	}
	who, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authentication.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil || who.Status.UserInfo.Username != "bob" {
		t.Errorf("who am I: %v %v", who, err)
	}
	if list, err := client.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{Limit: 500}); err != nil || len(list.Items) != 1 || string(list.Items[0].Data["k"]) != "v" {
		t.Errorf("secrets: %v %v", list, err)
	}
}
