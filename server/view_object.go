package server

import (
	"crypto/sha256"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Object is any Kubernetes object.
type Object interface {
	metav1.Object
	runtime.Object
}

// Objects are the objects of the manifests other than pods, each list sorted by
// namespace and name.
type Objects struct {
	ConfigMaps, Secrets, Claims, Volumes, TrustBundles, CSIDrivers []*ObjectView
}

// ObjectView is an object with its origin. All fields but Line are required.
type ObjectView struct {
	Object Object
	// Path and Line have the same meaning as in PodView.
	Path string
	Line int
}

// DeriveUID returns a UID for an object without UID. The UID is derived from names, so that it is
// the same in every process.
func DeriveUID(names ...string) types.UID {
	sum := sha256.Sum256([]byte(strings.Join(names, "\x00")))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // RFC 9562, version 8
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]))
}
