package objects

import (
	certificates "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	nodes "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
)

// publishedObjects returns all results of lookups as the Objects to publish.
func (r *Resolver) publishedObjects() manifest.Objects {
	o := manifest.Objects{
		ConfigMaps:   map[types.NamespacedName]*v1.ConfigMap{},
		Secrets:      map[types.NamespacedName]*v1.Secret{},
		Claims:       map[types.NamespacedName]*v1.PersistentVolumeClaim{},
		Volumes:      map[types.NamespacedName]*v1.PersistentVolume{},
		TrustBundles: map[types.NamespacedName]*certificates.ClusterTrustBundle{},
		Cluster: &manifest.Cluster{
			Missing:            map[manifest.ObjectRef]manifest.MissingObject{},
			Tokens:             map[types.NamespacedName]manifest.Token{},
			PodCertificates:    map[types.NamespacedName]*manifest.PodCertificate{},
			SignerTrustBundles: map[string][]*certificates.ClusterTrustBundle{},
			RuntimeHandlers:    map[string]string{},
			Services:           r.servicesByNamespace,
			CSIDrivers:         r.driverSpecs,
			AttachedVolumes:    map[string]map[string]string{},
		},
	}
	for ref, f := range r.results {
		key := ref.NamespacedName
		switch object := f.object.(type) {
		case *v1.ConfigMap:
			o.ConfigMaps[key] = object
		case *v1.Secret:
			o.Secrets[key] = object
		case *boundClaim:
			o.Claims[key] = object.claim
			if object.volume != nil {
				o.Volumes[types.NamespacedName{Name: object.volume.Name}] = object.volume
			}
		case *certificates.ClusterTrustBundle:
			o.TrustBundles[key] = object
		case []*certificates.ClusterTrustBundle:
			o.Cluster.SignerTrustBundles[key.Name] = object
		case *nodes.RuntimeClass:
			o.Cluster.RuntimeHandlers[key.Name] = object.Handler
		case attachment:
			o.Cluster.AttachedVolumes[key.Name] = object
		case *podCertificate:
			o.Cluster.PodCertificates[key] = object.files
		case token:
			o.Cluster.Tokens[key] = manifest.Token(object)
		default:
			o.Cluster.Missing[ref] = f.missing
		}
	}
	return o
}
