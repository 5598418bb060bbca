// Package metadata asks the service by which a cloud tells a machine what it is: its
// name, its zone, what the cloud calls it.
//
//	OpenStack   /openstack/latest/meta_data.json, and EC2's instance-type
//	EC2         a token (IMDSv2), the instance-identity document, local-hostname
//	GCE         instance/{name,zone,machine-type}, project/project-id
//
// Anybody who gets between can answer: what comes is short, of one machine, follows no
// redirect and no proxy, and is checked before it names anything. A name, an id and a
// zone are there or the answer is none.
package metadata
