-- A text that came with many others is kept in its row until it has a file of its own, so that one commit makes all of
-- them durable (offload/filing.rs).
ALTER TABLE offload_refs ADD COLUMN content TEXT;
CREATE INDEX offload_refs_unfiled ON offload_refs (path) WHERE content IS NOT NULL;
