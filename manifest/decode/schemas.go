package decode

import (
	"sync"

	certificates "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"

	"podd/manifest"
	"podd/manifest/schema"
)

// Schemas of the kinds that File decodes. The schema of pods allows any value for status and for
// the metadata that an API server sets.
var (
	podSchema = sync.OnceValue(func() *schema.Schema {
		unchecked := []string{"status"}
		for _, key := range manifest.ServerMetadataFields {
			unchecked = append(unchecked, "metadata."+key)
		}
		return schema.New[v1.Pod](unchecked...)
	})
	configMapSchema   = sync.OnceValue(func() *schema.Schema { return schema.New[v1.ConfigMap]() })
	secretSchema      = sync.OnceValue(func() *schema.Schema { return schema.New[v1.Secret]() })
	claimSchema       = sync.OnceValue(func() *schema.Schema { return schema.New[v1.PersistentVolumeClaim]() })
	volumeSchema      = sync.OnceValue(func() *schema.Schema { return schema.New[v1.PersistentVolume]() })
	trustBundleSchema = sync.OnceValue(func() *schema.Schema { return schema.New[certificates.ClusterTrustBundle]() })
	csiDriverSchema   = sync.OnceValue(func() *schema.Schema { return schema.New[storage.CSIDriver]() })
)
