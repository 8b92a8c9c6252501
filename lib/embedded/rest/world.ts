import type { KubeObject } from '../api/object.ts';
import type { Resource, Version } from '../api/resource.ts';
import type { RequestInfo } from '../http/info.ts';
import type { Registry } from '../registry/registry.ts';
import type { Store } from '../storage/store.ts';

/** Everything that handlers and controllers of one cluster share. */
export interface World {
  readonly store: Store;
  readonly registry: Registry;
  readonly now: () => Date;
}

/** Who sent a request. */
export interface User {
  readonly name: string;
  readonly groups: readonly string[];
}

/** One request to one resource. */
export interface Call {
  readonly world: World;
  readonly info: RequestInfo;
  readonly query: URLSearchParams;
  readonly contentType: string;
  readonly body: Buffer;
  readonly user: User;
  readonly userAgent: string;
  readonly resource: Resource;
  readonly version: Version;
  /** Becomes Warning headers. */
  readonly warnings: string[];
}

/** What a handler answers. */
export interface Answer {
  readonly code: number;
  readonly body: unknown;
}

/** The object as this version shows it: conversion None changes nothing else. */
export function atVersion(object: KubeObject, call: { resource: Resource; version: Version }): KubeObject {
  const { group } = call.resource;
  const apiVersion = group ? `${group}/${call.version.name}` : call.version.name;
  return object.apiVersion === apiVersion ? object : { ...object, apiVersion };
}
