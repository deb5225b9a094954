//! Embeddings, as OpenAI-compatible endpoints have them.

use serde_json::{Value, json};

/// Returns the body of a request.
pub(super) fn body(model: &str, texts: &[String]) -> Value {
    json!({"model": model, "input": texts, "encoding_format": "float"})
}

/// Returns the vectors in a response in the order of the texts. Endpoints may answer out of order.
pub(super) fn answer(response: &Value, texts: usize, dimensions: u32) -> Result<Vec<Vec<f32>>, String> {
    let data = response.get("data").and_then(Value::as_array).ok_or("the endpoint's answer has no data")?;
    if data.len() != texts {
        return Err(format!("the endpoint answered {} vectors for {texts} texts", data.len()));
    }
    let mut vectors = vec![Vec::new(); texts];
    for (place, item) in data.iter().enumerate() {
        let index = item.get("index").and_then(Value::as_u64).map_or(Some(place), |index| usize::try_from(index).ok());
        let slot = index.and_then(|index| vectors.get_mut(index)).ok_or("the endpoint answered an index beyond the texts")?;
        let numbers = item.get("embedding").and_then(Value::as_array).ok_or("the endpoint's answer has no embedding")?;
        *slot = numbers
            .iter()
            .map(|number| number.as_f64().map(|number| number as f32))
            .collect::<Option<Vec<f32>>>()
            .ok_or("an embedding holds more than numbers")?;
        if slot.len() != dimensions as usize {
            return Err(format!("the endpoint answered {} dimensions, the configuration says {dimensions}", slot.len()));
        }
    }
    if vectors.iter().any(Vec::is_empty) {
        return Err("the endpoint answered one text twice and another not at all".into());
    }
    Ok(vectors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_come_back_in_the_order_of_the_texts() {
        let response = json!({"data": [{"index": 1, "embedding": [3, 4]}, {"index": 0, "embedding": [1, 2.5]}]});
        assert_eq!(answer(&response, 2, 2), Ok(vec![vec![1.0, 2.5], vec![3.0, 4.0]]));
    }

    #[test]
    fn vectors_that_do_not_fit_the_texts_are_a_failure() {
        assert!(answer(&json!({"data": [{"embedding": [1]}]}), 2, 1).is_err());
        assert!(answer(&json!({"data": [{"embedding": [1]}]}), 1, 2).is_err());
        assert!(answer(&json!({"data": [{"index": 5, "embedding": [1]}]}), 1, 1).is_err());
        assert!(answer(&json!({"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}), 2, 1).is_err());
    }
}
