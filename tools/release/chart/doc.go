// Package chart generates the Helm chart from the manifests of config, so that they never differ.
//
// A template is the text of a manifest, comments included, in which some values are replaced by
// template expressions: replicas and resources of processes, the data of ConfigMaps, the registry
// of images. values.yaml has the replaced text with its comments, so rendering the chart with its
// default values gives the same manifests.
package chart
