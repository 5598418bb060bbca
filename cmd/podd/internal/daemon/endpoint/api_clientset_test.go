//go:build !race

// The race detector would make the compilation of client-go's clientset last minutes; see the Makefile.

package endpoint

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// pods returns client-go's client for the pods of the namespace default.
func (w *writableAPI) pods() corev1.PodInterface {
	client, err := kubernetes.NewForConfig(&rest.Config{Host: w.url, QPS: -1})
	if err != nil {
		w.t.Fatal(err)
	}
	return client.CoreV1().Pods("default")
}

// TestWrite_ClientGo checks writes with client-go, which sends protobuf instead of JSON.
func TestWrite_ClientGo(t *testing.T) {
	w := newWritable(t)
	pods := w.pods()
	p, err := pods.Create(t.Context(), &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "job-"},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "a", Image: "a:1"}}},
	}, metav1.CreateOptions{})
	if err != nil || !strings.HasPrefix(p.Name, "job-") || len(p.Name) != len("job-")+5 || p.GenerateName != "job-" {
		t.Fatalf("create: got pod %+v, error %v; want a name of \"job-\" and 5 characters", p, err)
	}
	p.Labels = map[string]string{"a": "b"}
	updated, err := pods.Update(t.Context(), p, metav1.UpdateOptions{})
	if err != nil || updated.Labels["a"] != "b" || updated.UID != p.UID {
		t.Fatalf("update of labels: got pod %+v, error %v; want the same pod with the label a=b", updated, err)
	}
	p.Labels["a"] = "c"
	if _, err := pods.Update(t.Context(), p, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("update with an old resource version: got error %v, want Conflict", err)
	}
	updated.Spec.Containers[0].Args = []string{"x"}
	if _, err := pods.Update(t.Context(), updated, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("update of args: got error %v, want Invalid", err)
	}
	wrong := types.UID("other")
	if err := pods.Delete(t.Context(), p.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrong}}); !apierrors.IsConflict(err) {
		t.Errorf("delete with another UID: got error %v, want Conflict", err)
	}
	grace := int64(7)
	if err := pods.Delete(t.Context(), p.Name, metav1.DeleteOptions{GracePeriodSeconds: &grace, Preconditions: metav1.NewUIDPreconditions(string(p.UID))}); err != nil {
		t.Error(err)
	}
	if got, _ := w.deleted.Load(p.Name); got != 7*time.Second {
		t.Errorf("delete: got grace period %v, want 7s", got)
	}
	if _, err := pods.Get(t.Context(), p.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("get after delete: got error %v, want NotFound", err)
	}
	for _, name := range []string{"one", "two", "three"} {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"n": name}}, Spec: p.Spec}
		p.Spec.NodeName = ""
		if _, err := pods.Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := pods.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "n!=two"}); err != nil {
		t.Error(err)
	}
	if all, err := pods.List(t.Context(), metav1.ListOptions{}); err != nil || len(all.Items) != 1 || all.Items[0].Name != "two" {
		t.Errorf("after DeleteCollection: got pods %+v, error %v; want only the pod \"two\"", all, err)
	}
}

// TestManagedFields_Pod checks the managers of a pod after applies, updates and a resize.
func TestManagedFields_Pod(t *testing.T) {
	w := newWritable(t)
	pods := w.pods()
	web := func(image string) *apply.PodApplyConfiguration {
		return apply.Pod("web", "default").WithSpec(apply.PodSpec().WithContainers(
			apply.Container().WithName("a").WithImage(image).WithResources(apply.ResourceRequirements().WithRequests(v1.ResourceList{"cpu": resource.MustParse("100m")})).WithPorts(apply.ContainerPort().WithContainerPort(80)).WithPorts(apply.ContainerPort().WithContainerPort(80).WithProtocol("UDP")),
			apply.Container().WithName("b").WithImage("b:1")))
	}
	applyOptions := func(manager string) metav1.ApplyOptions { return metav1.ApplyOptions{FieldManager: manager} }
	p, err := pods.Apply(t.Context(), web("a:1").WithLabels(map[string]string{"x": "y"}), applyOptions("one"))
	if err != nil || managersText(p.ManagedFields, "image") != "one Apply *" || len(p.Spec.Containers[0].Ports) != 2 {
		t.Fatalf("first apply: got %+v, error %v; want the image managed by \"one\", and 2 ports", p, err)
	}
	uid := p.UID
	if p, err = pods.Apply(t.Context(), web("a:2"), applyOptions("one")); err != nil || p.UID != uid || p.Spec.Containers[0].Image != "a:2" || len(p.Labels) > 0 {
		t.Fatalf("second apply: got %+v, error %v; want the same pod with image a:2 and no labels", p, err)
	}
	if _, err := pods.Apply(t.Context(), web("a:3"), applyOptions("two")); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `.spec.containers[name="a"].image`) {
		t.Errorf("apply by \"two\": got error %v, want a conflict about the image", err)
	}
	if _, err := pods.Apply(t.Context(), apply.Pod("web", "default").WithSpec(apply.PodSpec().WithHostNetwork(true)), applyOptions("two")); !apierrors.IsInvalid(err) {
		t.Errorf("apply of hostNetwork: got error %v, want Invalid", err)
	}
	if _, err := pods.Apply(t.Context(), apply.Pod("web", "default").WithSpec(apply.PodSpec().WithContainers(apply.Container().WithName("c").WithImage("c"))), applyOptions("two")); !apierrors.IsInvalid(err) {
		t.Errorf("apply of an additional container: got error %v, want Invalid", err)
	}
	// "kubectl set image" makes such an update. The next apply by "one" then has a conflict.
	p.Spec.Containers[0].Image = "a:4"
	if p, err = pods.Update(t.Context(), p, metav1.UpdateOptions{FieldManager: "hand"}); err != nil || managersText(p.ManagedFields, "image") != "hand Update *, one Apply *" {
		t.Fatalf("update of the image: got %+v, error %v; want the image managed by \"hand\", but not by \"one\"", p, err)
	}
	if _, err := pods.Apply(t.Context(), web("a:2"), applyOptions("one")); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `conflict with "hand"`) {
		t.Errorf("apply after the update: got error %v, want a conflict with \"hand\"", err)
	}
	q, err := pods.Update(t.Context(), p, metav1.UpdateOptions{FieldManager: "third"})
	if err != nil || q.ResourceVersion != p.ResourceVersion {
		t.Errorf("update without a change: got %+v, error %v; want the same resource version", q, err)
	}
	// A resize adds a manager, which owns only the resources.
	resized := `{"metadata":{"labels":{"no":"no"}},"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"1"}}}]}}`
	sized := w.do("PATCH", podsPath+"/web/resize?fieldManager=scaler", "application/strategic-merge-patch+json", resized)
	if err := sized.check(200, `"cpu":"1"`); err != nil {
		t.Fatal(err)
	}
	q, err = pods.Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil || len(q.Labels) > 0 || !strings.Contains(managersText(q.ManagedFields, "resources"), "scaler Update resize *") || strings.Contains(managersText(q.ManagedFields, "labels"), "*") {
		t.Errorf("after the resize: got managers %q of the resources, managed fields %+v, error %v; want the resources, but not the labels, managed by \"scaler\"", managersText(q.ManagedFields, "resources"), q.ManagedFields, err)
	}
}
