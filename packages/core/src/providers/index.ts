/** Every entry by itself: a bundle holds the ones that are imported, and no other. */
export * from './entries/index.ts'
